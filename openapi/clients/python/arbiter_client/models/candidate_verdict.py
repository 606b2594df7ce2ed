from typing import Literal

CandidateVerdict = Literal["moved", "not-needed", "out-of-reach", "protected", "put-back", "victim"]

CANDIDATE_VERDICT_VALUES: set[CandidateVerdict] = {
    "moved",
    "not-needed",
    "out-of-reach",
    "protected",
    "put-back",
    "victim",
}


def check_candidate_verdict(value: str) -> CandidateVerdict:
    if value in CANDIDATE_VERDICT_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {CANDIDATE_VERDICT_VALUES!r}")
