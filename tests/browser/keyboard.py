"""What acts on a click can be done with the keyboard: it takes the focus, in the order in which it stands."""

from playwright.sync_api import Page

HEARD = """
window.heard = new Set();
const add = EventTarget.prototype.addEventListener;
EventTarget.prototype.addEventListener = function (kind, ...rest) {
  if (kind === "click" && this instanceof Element) window.heard.add(this);
  return add.call(this, kind, ...rest);
};
"""
"""Before any other script of a page: remembers every element that listens for clicks."""

_UNREACHABLE = """() => {
  const natural = `a, button, summary, input:not([type=hidden]), select, textarea, [onclick],
    [data-copy], [data-print]`;
  const asks = "[hx-get], [hx-post], [hx-put], [hx-patch], [hx-delete]";
  const acting = new Set([...document.querySelectorAll(natural), ...document.querySelectorAll(asks), ...window.heard]);
  // A form acts by its buttons: htmx listens there for which of them it was. What a click on a chart hides is told
  // in words beside it.
  const ours = (one) => one.isConnected && !one.disabled && !one.matches("form") && !one.closest(".uplot");
  const deaf = (one) => one.tabIndex < 0 || one.matches("a:not([href], [tabindex])");
  const said = (one) => one.outerHTML.slice(0, 160);
  const faults = [...acting].filter((one) => ours(one) && deaf(one)).map(said);
  return faults.concat([...document.querySelectorAll("[tabindex]")].filter((one) => one.tabIndex > 0).map(said));
}"""

_ENTERED = """(form) => {
  const first = [...form.elements].find((one) => one.tabIndex >= 0 && !one.disabled && one.checkVisibility());
  if (first) first.focus();
  return form.elements.length;
}"""
_AT_ACTION = """(form) => {
  const at = document.activeElement;
  return at.form === form && at.type === "submit";
}"""


def unreachable(page: Page) -> list[str]:
    """Elements that act on a click and take no focus, or jump the queue for it; a page opened with ``HEARD``."""
    return page.evaluate(_UNREACHABLE)


def dead_ends(page: Page) -> list[str]:
    """Forms on the screen whose action Tab does not come to from their first field."""
    found: list[str] = []
    for form in page.locator("form:visible").element_handles():
        for _ in range(form.evaluate(_ENTERED) + 1):
            if form.evaluate(_AT_ACTION):
                break
            page.keyboard.press("Tab")
        else:
            found.append(form.evaluate("form => form.outerHTML.slice(0, 160)"))
    page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    return found
