package nn

var (
	_ Module   = (*LayerNorm)(nil)
	_ Resetter = (*LayerNorm)(nil)
)

// LayerNorm is y = (x - mean) / √(variance + eps) · weight + bias, with the mean and the variance
// of each row of x [N, F]. A row does not depend on other rows, so it is the same in every batch.
//
// Its parameters are weight [F] and bias [F], as in torch.nn.LayerNorm and in
// torch_geometric.nn.LayerNorm with mode="node". (PyG's default, mode="graph", uses the mean and
// variance over all rows of a batch, which depend on the batch.)
//
// Source: J. L. Ba, J. R. Kiros, G. E. Hinton, "Layer normalization", 2016,
// arXiv:1607.06450.
type LayerNorm struct {
	Weight *Param `nn:"weight,vector"`
	Bias   *Param `nn:"bias,vector"`
	Eps    float64
}

// NewLayerNorm returns a LayerNorm of cols columns, with eps = 1e-5.
func NewLayerNorm(cols int) *LayerNorm {
	return &LayerNorm{Weight: NewParam(1, cols), Bias: NewParam(1, cols), Eps: 1e-5}
}

// Reset sets the weight to 1 and the bias to 0.
func (l *LayerNorm) Reset(init func(p *Param, bound float64)) { ones(l.Weight, l.Bias, init) }

// Forward implements [Module].
func (l *LayerNorm) Forward(f *Fwd, x *Tensor) *Tensor {
	return f.LayerNorm(x, f.Param(l.Weight), f.Param(l.Bias), l.Eps)
}

// forwardReLU implements [relued].
func (l *LayerNorm) forwardReLU(f *Fwd, x *Tensor, p float64) *Tensor {
	return f.LayerNormReLU(x, f.Param(l.Weight), f.Param(l.Bias), l.Eps, p)
}

var (
	_ Module   = (*BatchNorm)(nil)
	_ Resetter = (*BatchNorm)(nil)
)

// BatchNorm is y = (x - mean) / √(variance + eps) · weight + bias, column by column of x [N, F]. In
// training, mean and variance are those of the pass's rows; otherwise they are the running
// statistics. Every training pass moves the running statistics towards its own by Momentum (the
// variance towards the unbiased one).
//
// BatchNorm is an exception to world-size invariance: a rank's statistics are those of its own
// rows (in a cooperative batch those of the nodes that it owns), with virtual ranks those of each
// virtual rank's rows, so results depend on the division of seeds among all virtual ranks, and not
// on how many of these a rank has. The running statistics of ranks differ too; they are in
// [Params.Fixed]. Before an evaluation on several ranks the caller must make them equal, as
// torch.nn.parallel.DistributedDataParallel does by broadcasting those of rank 0. A worker of package
// gnb moves them by the first virtual rank's pass of each step alone. A row sampled in several hops counts once per occurrence. A pass
// without rows changes nothing; a pass with one row gives zeros and does not change the running
// variance.
//
// Its parameters are module.weight [F], module.bias [F], module.running_mean [F] and
// module.running_var [F], as in torch_geometric.nn.BatchNorm; the last two are saved but not
// trained. PyTorch's num_batches_tracked is not stored: PyTorch treats a missing one as 0, and uses
// it only without a momentum.
//
// Source: S. Ioffe, C. Szegedy, "Batch normalization", ICML 2015, arXiv:1502.03167.
type BatchNorm struct {
	Weight      *Param `nn:"module.weight,vector"`
	Bias        *Param `nn:"module.bias,vector"`
	RunningMean *Param `nn:"module.running_mean,vector"`
	RunningVar  *Param `nn:"module.running_var,vector"`
	Momentum    float64
	Eps         float64
}

// NewBatchNorm returns a BatchNorm of cols columns, with momentum 0.1 and eps = 1e-5.
func NewBatchNorm(cols int) *BatchNorm {
	return &BatchNorm{
		Weight: NewParam(1, cols), Bias: NewParam(1, cols),
		RunningMean: NewFixed(1, cols, 0), RunningVar: NewFixed(1, cols, 1),
		Momentum: 0.1, Eps: 1e-5,
	}
}

// Reset sets the weight and the running variance to 1, the bias and the running mean to 0.
func (l *BatchNorm) Reset(init func(p *Param, bound float64)) {
	ones(l.Weight, l.Bias, init)
	clear(l.RunningMean.W)
	for i := range l.RunningVar.W {
		l.RunningVar.W[i] = 1
	}
}

func ones(weight, bias *Param, init func(p *Param, bound float64)) {
	for i := range weight.W {
		weight.W[i] = 1
	}
	init(bias, 0)
}

// Forward implements [Module]. In training it updates the running statistics: the device's if a
// device keeps them, without waiting for it (see [ops.Keeper]), otherwise the host's.
func (l *BatchNorm) Forward(f *Fwd, x *Tensor) *Tensor {
	w, b := f.Param(l.Weight), f.Param(l.Bias)
	if !f.Train() {
		return f.NormBy(x, f.Param(l.RunningMean), f.Param(l.RunningVar), w, b, l.Eps)
	}
	return l.track(f)(f.BatchNorm(x, w, b, l.Eps))
}

// forwardReLU implements [relued].
func (l *BatchNorm) forwardReLU(f *Fwd, x *Tensor, p float64) *Tensor {
	w, b := f.Param(l.Weight), f.Param(l.Bias)
	if !f.Train() {
		return f.NormByReLU(x, f.Param(l.RunningMean), f.Param(l.RunningVar), w, b, l.Eps, p)
	}
	return l.track(f)(f.BatchNormReLU(x, w, b, l.Eps, p))
}

// track returns the function that moves the running statistics towards those of y's rows, and returns y.
func (l *BatchNorm) track(f *Fwd) func(y, mean, variance *Tensor) *Tensor {
	return func(y, mean, variance *Tensor) *Tensor {
		n := y.Rows()
		if n > 0 {
			f.Track(l.RunningMean, mean, 1-l.Momentum, l.Momentum)
		}
		if n > 1 {
			f.Track(l.RunningVar, variance, 1-l.Momentum, l.Momentum*(float64(n)/float64(n-1)))
		}
		return y
	}
}

// relued is a normalisation that computes ReLU and, with p > 0, dropout in the same pass over the rows.
type relued interface {
	forwardReLU(f *Fwd, x *Tensor, p float64) *Tensor
}

var (
	_ relued = (*LayerNorm)(nil)
	_ relued = (*BatchNorm)(nil)
)

// normReLU is a normalisation, ReLU and, with p > 0, dropout.
func normReLU(f *Fwd, norm Module, x *Tensor, p float64) *Tensor {
	if n, ok := norm.(relued); ok {
		return n.forwardReLU(f, x, p)
	}
	x = f.ReLU(norm.Forward(f, x))
	if p > 0 {
		x = f.Dropout(x, p)
	}
	return x
}
