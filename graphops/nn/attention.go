package nn

// What the layers with attention have in common.

// checkAttention checks their options.
func checkAttention(op string, dropout float64, edgeDim int) {
	if !(dropout >= 0 && dropout < 1) {
		fail(op, "Dropout is %v; it must be at least 0 and below 1", dropout)
	}
	if edgeDim < 0 {
		fail(op, "EdgeDim is %d; it is the number of features of an edge, or 0", edgeDim)
	}
}

// newAttention returns an attention vector for each head, [1, heads, out] in files.
func newAttention(heads, out int) *Param {
	p := NewParam(1, heads*out)
	p.FileShape = []int{1, heads, out}
	return p
}

// headCols is the number of columns of heads that are concatenated or, with mean, averaged.
func headCols(heads, out int, mean bool) int {
	if mean {
		return out
	}
	return heads * out
}

// attention returns the coefficients of the scores [edges, H]: their softmax over the in-edges of each
// destination, with dropout.
func attention(f *Fwd, b *Block, score *Tensor, dropout float64) *Tensor {
	att := f.EdgeSoftmax(b, score)
	if dropout > 0 {
		att = f.Dropout(att, dropout)
	}
	return att
}

// attend returns the sums of the sources' rows x [NumSrc, H·F] by the coefficients of the scores, averaged
// over the heads if mean is set, plus bias unless it is nil.
func attend(f *Fwd, b *Block, x, score *Tensor, heads int, mean bool, dropout float64, bias *Param) *Tensor {
	y := f.AggregateHeads(b, x, attention(f, b, score, dropout))
	if mean {
		y = f.HeadMean(y, heads)
	}
	if bias != nil {
		y = f.AddRow(y, f.Param(bias))
	}
	return y
}

// attentionStack makes the layers of a model with attention: conv makes a layer of the given heads. Hidden
// layers concatenate their heads, and the last one averages them.
func attentionStack[C any](s ModelConfig, op string, conv func(in, out, heads int, mean bool) C) []C {
	heads, last := s.attentionHeads(op)
	made := 0
	return Stack(s.Inner(), func(in, out int) C {
		if made++; made == s.Layers && !s.headed() {
			return conv(in, out, last, true)
		}
		return conv(in, out/heads, heads, false)
	})
}

// attentionDropout is the dropout probability of attention coefficients.
func (s ModelConfig) attentionDropout() float64 {
	if s.Arrangement == Strong {
		return 0
	}
	return s.Dropout
}

// withELU returns the configuration with the activation of models with attention, unless it has another.
func (s ModelConfig) withELU() ModelConfig {
	if s.Activation == "" && s.Arrangement == "" {
		s.Activation = "elu"
	}
	return s
}
