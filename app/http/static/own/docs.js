// The API reference: the document of this service, each operation to try with a real request.
"use strict";
const system = matchMedia("(prefers-color-scheme: dark)");
const theme = () => document.documentElement.classList.toggle("dark-mode", system.matches);
system.addEventListener("change", theme);
theme();

// Swagger UI puts a link into the button that opens an operation, which keyboards and screen readers can't tell apart:
// here it is text, and the button still sets the address. Fields that it leaves without a name get that of their row;
// what scrolls can be reached.
const plain = (_, { React }) => ({ path, text }) => React.createElement("span", { id: path }, text);
const named = () => {
  for (const field of document.querySelectorAll("#docs :is(select, input:not([type=hidden]), textarea):not([aria-label])")) {
    if (field.labels.length && !field.closest(".servers")) continue; // that label holds nothing else
    const row = field.closest("[data-param-name]");
    const place = field.closest(".servers") ? "Server" : field.closest(".response-control-media-type, .content-type-wrapper") ? "Media type"
      : field.closest(".body-param, .opblock-section-request-body") ? "Body of the request" : "Filter by tag";
    field.setAttribute("aria-label", row ? row.dataset.paramName : field.title || field.placeholder || place);
  }
  for (const close of document.querySelectorAll("#docs .close-modal:not([aria-label])")) close.setAttribute("aria-label", "Close");
  for (const text of document.querySelectorAll("#docs pre:not([tabindex])")) text.tabIndex = 0;
};
new MutationObserver(named).observe(document.getElementById("docs"), { childList: true, subtree: true });

SwaggerUIBundle({
  url: "/openapi.json", dom_id: "#docs", deepLinking: true, docExpansion: "list", defaultModelsExpandDepth: 0,
  tryItOutEnabled: true, validatorUrl: null, filter: true, persistAuthorization: false,
  plugins: [{ wrapComponents: { DeepLink: plain } }],
});
