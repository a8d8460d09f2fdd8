package nn

// GELU is x·Φ(x), elementwise, with the distribution function Φ of the normal distribution, as PyTorch's default: see
// [tensor.Fwd.GELU]. The rows keep their space.
func GELU(f *Fwd, x *Tensor) *Tensor { return f.GELU(x) }
