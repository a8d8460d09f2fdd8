package gnb

import "github.com/graphnb/graphnb/graphops/dataset"

// Logits reads what [Infer] has written: row v is node v's output, [nodes,
// classes], of which [nn.Argmax] is the predicted class. It is in memory of its
// own: 4·nodes·classes bytes.
func (r InferResult) Logits() (*dataset.Matrix, error) { return dataset.ReadNPY(r.Out) }
