"""The name of the Workload that Kueue made for a pod's owner: its digits are a SHA-1 of kind, group, name and UID."""

from app.formats.extender import OwnerReference
from app.formats.kueue.system import workload_names

JOB_SET = {"jobset.sigs.k8s.io/jobset-name": "train", "jobset.sigs.k8s.io/jobset-uid": "uj"}
OWNERS = [
    OwnerReference(kind="ReplicaSet", api_version="apps/v1", name="rs", uid="ur"),
    OwnerReference(kind="Job", api_version="batch/v1", name="j", uid="uo", controller=True),
]


def test_names_the_likeliest_first() -> None:
    words = JOB_SET | {"kueue.x-k8s.io/pod-group-name": "group", "kueue.x-k8s.io/workload": "own"}
    job, *others = ["job-j-e9150", "replicaset-rs-0eb76", "pod-p-0-d71f7"]
    assert workload_names("p-0", "up", words, OWNERS) == [job, *others]
    made = OwnerReference(kind="Job", api_version="batch/v1", name="train-workers-0", uid="uo", controller=True)
    assert workload_names("p-0", "up", words, [made])[0] == "jobset-train-4801f"
    for key in JOB_SET:
        assert "jobset-train-4801f" not in workload_names("p-0", "up", {key: JOB_SET[key]}, [made])
    assert workload_names("p-0", "up", words, []) == ["pod-p-0-d71f7"]


def test_a_long_name_is_cut_to_what_a_name_may_be_long_now_and_formerly() -> None:
    (short,) = workload_names("n" * 53, "u", {}, [])
    long, former = workload_names("n" * 54, "u", {}, [])
    assert (len(short), len(long), len(former)) == (63, 64, 63)
    assert long[-6:] == former[-6:]
