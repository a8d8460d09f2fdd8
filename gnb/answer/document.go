package answer

import "slices"

// OpenAPI returns the OpenAPI document of a server's requests, which GET /openapi.json returns too.
func OpenAPI() []byte { return slices.Clone(openAPI) }
