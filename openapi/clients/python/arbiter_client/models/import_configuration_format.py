from typing import Literal

ImportConfigurationFormat = Literal["kai", "kubernetes", "kueue", "ytsaurus", "yunikorn"]

IMPORT_CONFIGURATION_FORMAT_VALUES: set[ImportConfigurationFormat] = {
    "kai",
    "kubernetes",
    "kueue",
    "ytsaurus",
    "yunikorn",
}


def check_import_configuration_format(value: str) -> ImportConfigurationFormat:
    if value in IMPORT_CONFIGURATION_FORMAT_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {IMPORT_CONFIGURATION_FORMAT_VALUES!r}")
