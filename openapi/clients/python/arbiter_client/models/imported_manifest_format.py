from typing import Literal

ImportedManifestFormat = Literal["kai", "kubernetes", "kueue", "ytsaurus", "yunikorn"]

IMPORTED_MANIFEST_FORMAT_VALUES: set[ImportedManifestFormat] = {
    "kai",
    "kubernetes",
    "kueue",
    "ytsaurus",
    "yunikorn",
}


def check_imported_manifest_format(value: str) -> ImportedManifestFormat:
    if value in IMPORTED_MANIFEST_FORMAT_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {IMPORTED_MANIFEST_FORMAT_VALUES!r}")
