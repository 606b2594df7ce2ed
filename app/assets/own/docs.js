// The API reference: the document of this service, each operation to try with a real request.
"use strict";
SwaggerUIBundle({
  url: "/openapi.json", dom_id: "#docs", deepLinking: true, docExpansion: "list", defaultModelsExpandDepth: 0,
  tryItOutEnabled: true, validatorUrl: null, filter: true, persistAuthorization: false,
});
