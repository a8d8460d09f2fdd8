// Package answer answers requests for predictions over HTTP and gRPC: for nodes of a dataset, for new nodes with their raw columns and edges,
// and for pairs of nodes; it ranks the targets of a node, and keeps nodes and edges that are sent. Its answers have the bits of gnb.Infer.
//
// # Basics
//
//	p, err := predict.Open(ctx, run, ds, predict.Options{Threads: 1})
//	s, err := answer.New(p, answer.Options{})
//	err = s.Serve(ctx, listener)
//
// The command "gnb serve-model" is such a server. Its requests and answers are JSON:
//
//	curl 'http://127.0.0.1:7800/v1/nodes?id=c17'
//	curl http://127.0.0.1:7800/v1/new -d '{"nodes": [{"id": "n1", "columns": {"plan": "pro"}}], "edges": [{"source": "n1", "target": "c17"}]}'
//
// GET /openapi.json describes all of them, and GET /answer.proto the same calls over gRPC, which the same port answers.
//
// # Requests that wait
//
// At most [Options].Calls are computed at a time. Requests for known nodes that wait for their turn are then computed together; what is
// computed together changes no bit of an answer. More than Options.Waiting requests are refused with status 503.
//
// # Errors
//
// An answer with a status of 400 or more is {"error": sentence, "kind": kind}, with the sentences of package predict: unknown_node
// (404), request (400), too_large (413: the body, the number of nodes, or a node's neighbourhood), unauthorized (401), busy (503),
// timeout (504), not_finite (500), internal (500).
//
// # Security
//
// A server that other machines reach needs a certificate and a token, unless [Options].Insecure is set. Requests carry the token as
// "Authorization: Bearer TOKEN"; /healthz needs none.
package answer
