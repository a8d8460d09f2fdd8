package nn

// LayerNorm is y = (x - mean) / √(variance + eps) · weight + bias, with the mean
// and the variance of each row of x [N, F]. A row depends on no other, so it is
// the same in whatever batch.
//
// Parameters are weight [F] and bias [F], as torch.nn.LayerNorm's and those of
// torch_geometric.nn.LayerNorm with mode="node" (PyG's default, mode="graph",
// takes mean and variance over all rows of a batch, which depends on the batch).
//
// Source: J. L. Ba, J. R. Kiros, G. E. Hinton, "Layer normalization", 2016,
// arXiv:1607.06450.
type LayerNorm struct {
	Weight *Param `nn:"weight,vector"`
	Bias   *Param `nn:"bias,vector"`
	Eps    float64
}

// NewLayerNorm makes a LayerNorm of so many columns, with eps = 1e-5.
func NewLayerNorm(cols int) *LayerNorm {
	return &LayerNorm{Weight: NewParam(1, cols), Bias: NewParam(1, cols), Eps: 1e-5}
}

// Reset starts the weight from 1 and the bias from 0.
func (l *LayerNorm) Reset(init func(p *Param, bound float64)) { ones(l.Weight, l.Bias, init) }

// Forward implements [Module].
func (l *LayerNorm) Forward(f *Fwd, x *Tensor) *Tensor {
	return f.LayerNorm(x, f.Param(l.Weight), f.Param(l.Bias), l.Eps)
}

// BatchNorm is y = (x - mean) / √(variance + eps) · weight + bias, column by
// column of x [N, F]. While a pass trains, mean and variance are those of its
// rows; otherwise they are the running ones, which every training pass moves
// towards its own by Momentum (the variance towards the unbiased one).
//
// It is the documented exception to world-size invariance: a rank's statistics
// are those of its own rows, and with virtual ranks those of each virtual rank's,
// so results depend on how seeds are shared. The running statistics of ranks
// differ too; they are [Params.Fixed], and whoever evaluates on several ranks
// must make them equal first, as torch.nn.parallel.DistributedDataParallel does
// by broadcasting those of rank 0. Rows sampled in several hops take part as they
// occur. A pass without rows changes nothing; one row gives zeros, and leaves the
// running variance as it is.
//
// Parameters are module.weight [F], module.bias [F], module.running_mean [F] and
// module.running_var [F], as torch_geometric.nn.BatchNorm's; the last two are
// not trained but saved. PyTorch's num_batches_tracked is not kept: PyTorch takes
// it for 0 where it is missing, and uses it only without a momentum.
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

// NewBatchNorm makes a BatchNorm of so many columns, with momentum 0.1 and
// eps = 1e-5.
func NewBatchNorm(cols int) *BatchNorm {
	return &BatchNorm{
		Weight: NewParam(1, cols), Bias: NewParam(1, cols),
		RunningMean: NewFixed(1, cols, 0), RunningVar: NewFixed(1, cols, 1),
		Momentum: 0.1, Eps: 1e-5,
	}
}

// Reset starts the weight and the running variance from 1, the bias and the
// running mean from 0.
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

// Forward implements [Module]. While the pass trains it changes the running
// statistics: those that a device keeps, without waiting for it (see [tensor.Keeper]),
// else the host's.
func (l *BatchNorm) Forward(f *Fwd, x *Tensor) *Tensor {
	if !f.Train() {
		x = f.NormBy(x, f.Param(l.RunningMean), f.Param(l.RunningVar), l.Eps)
	} else {
		n := x.Rows()
		y, mean, variance := f.ColNorm(x, l.Eps)
		if n > 0 {
			f.Track(l.RunningMean, mean, 1-l.Momentum, l.Momentum)
		}
		if n > 1 {
			f.Track(l.RunningVar, variance, 1-l.Momentum, l.Momentum*(float64(n)/float64(n-1)))
		}
		x = y
	}
	return f.AddRow(f.MulCols(x, f.Param(l.Weight)), f.Param(l.Bias))
}
