"""Bodies of several files (RFC 7578): one part a field, whole in memory like any other body, and within its limits."""

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from app.base.errors import BadRequest

_MOST_PARTS = 16


def parts(body: bytes, content_type: str) -> dict[str, bytes]:
    """The parts of ``body`` by the name of their field. Raises BadRequest."""
    boundary = parse_options_header(content_type)[1].get(b"boundary")
    if not boundary:
        raise BadRequest("multipart/form-data without its boundary")
    reading = _Reading()
    try:
        parser = MultipartParser(boundary, reading.callbacks())  # pyright: ignore[reportArgumentType]
        parser.write(body)
    except FormParserError as error:
        raise BadRequest(f"the body is not valid multipart/form-data: {error}") from None
    if not reading.ended:
        raise BadRequest("the body is not valid multipart/form-data: it ends early")
    return {name: b"".join(pieces) for name, pieces in reading.found.items()}


class _Reading:
    """What the parser has told so far."""

    def __init__(self) -> None:
        self.found: dict[str, list[memoryview]] = {}
        self.ended = False
        self._field = self._value = b""
        self._into: list[memoryview] = []
        self._parts = 0
        self._named = True
        """Whether the last part had a name."""

    def callbacks(self) -> dict[str, object]:
        return {
            "on_part_begin": self._begin,
            "on_header_field": self._header_field,
            "on_header_value": self._header_value,
            "on_header_end": self._header_end,
            "on_part_data": self._data,
            "on_end": self._end,
        }

    def _begin(self) -> None:
        self._parts += 1
        if self._parts > _MOST_PARTS or not self._named:
            raise BadRequest(f"a part without a name, or more than {_MOST_PARTS} parts")
        self._into, self._named = [], False

    def _header_field(self, data: bytes, start: int, end: int) -> None:
        self._field += data[start:end]

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _header_end(self) -> None:
        if self._field.lower() == b"content-disposition":
            name = parse_options_header(self._value)[1].get(b"name", b"").decode("utf-8", "replace")
            if not name or name in self.found:
                raise BadRequest(f"part {name[:64]!r}: without a name, or there twice")
            self.found[name] = self._into
            self._named = True
        self._field = self._value = b""

    def _data(self, data: bytes, start: int, end: int) -> None:
        self._into.append(memoryview(data)[start:end])

    def _end(self) -> None:
        if not self._named:
            raise BadRequest("a part without a name")
        self.ended = True
