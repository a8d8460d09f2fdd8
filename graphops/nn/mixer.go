package nn

import "github.com/graphnb/graphnb/internal/parallel"

var _ Module = (*Mixer)(nil)

// Mixer is a layer of an MLP-Mixer over k slots of each item, such as the last k events of a node: first it mixes the slots of an item,
// column by column, then the columns of a slot,
//
//	z = x + T(norm_t(x)),  T(a)[s,c] = Σ_s' V[s,s']·gelu(Σ_r U[s',r]·a[r,c] + u[s']) + v[s]
//	y = z + C(norm_c(z)),  C(a)[s,:] = B·gelu(A·a[s,:] + a₀) + b₀
//
// x [n·k, d] has the k rows of an item one after another; an empty slot has zeros. An item does not depend on the other items. norm_c
// is over the d columns of a row. norm_t is over the k slots of a column, as in DyGLib's GraphMixer and in TPNet. U has k/2 rows and A 4·d,
// unless MixerOptions say otherwise. In training, dropout follows each gelu and each of the two parts.
//
// Its parameters have the names of DyGLib's MLPMixer: token_norm.weight [k], token_feedforward.ffn.0.weight, token_feedforward.ffn.3.weight,
// channel_norm.weight [d], channel_feedforward.ffn.0.weight, and so on, each with its bias. The order of rows changes between the
// two parts on the CPU, also in a pass on a GPU.
//
// Sources: I. Tolstikhin et al., "MLP-Mixer: an all-MLP architecture for vision", NeurIPS 2021, arXiv:2105.01601; W. Cong, S. Zhang,
// J. Kang, B. Yuan, H. Wu, X. Zhou, H. Tong, M. Mahdavi, "Do we really need complicated model architectures for temporal networks?", ICLR
// 2023, arXiv:2302.11636, equation 3.
type Mixer struct {
	TokenNorm   *LayerNorm `nn:"token_norm"`
	TokenIn     *Linear    `nn:"token_feedforward.ffn.0"`
	TokenOut    *Linear    `nn:"token_feedforward.ffn.3"`
	ChannelNorm *LayerNorm `nn:"channel_norm"`
	ChannelIn   *Linear    `nn:"channel_feedforward.ffn.0"`
	ChannelOut  *Linear    `nn:"channel_feedforward.ffn.3"`

	Dropout float64
}

// MixerOptions are the options of a Mixer. The zero value is GraphMixer's.
type MixerOptions struct {
	TokenHidden   int     // columns between the two linear layers over slots; 0 means k/2
	ChannelHidden int     // columns between the two linear layers over columns; 0 means 4·d
	Dropout       float64 // 0 means none
}

// NewMixer returns a Mixer for items of slots rows of cols columns.
func NewMixer(slots, cols int, o MixerOptions) *Mixer {
	const op = "NewMixer"
	switch {
	case slots < 1 || cols < 1:
		fail(op, "an item has %d slots of %d columns; it needs at least one of each", slots, cols)
	case o.TokenHidden < 0 || o.ChannelHidden < 0:
		fail(op, "TokenHidden is %d and ChannelHidden %d; they are numbers of columns, or 0", o.TokenHidden, o.ChannelHidden)
	case !(o.Dropout >= 0 && o.Dropout <= 1):
		fail(op, "Dropout is %g; it is a probability from 0 to 1", o.Dropout)
	}
	between, wide := o.TokenHidden, o.ChannelHidden
	if between == 0 {
		between = max(slots/2, 1)
	}
	if wide == 0 {
		wide = 4 * cols
	}
	return &Mixer{
		TokenNorm: NewLayerNorm(slots), TokenIn: NewLinear(slots, between, true), TokenOut: NewLinear(between, slots, true),
		ChannelNorm: NewLayerNorm(cols), ChannelIn: NewLinear(cols, wide, true), ChannelOut: NewLinear(wide, cols, true),
		Dropout: o.Dropout,
	}
}

// Forward returns y [n·k, d] for x [n·k, d]. The rows keep their space. With dropout x must have one, in which row s of item i has the
// id i·k + s: then an item has the same mask in every batch.
func (m *Mixer) Forward(f *Fwd, x *Tensor) *Tensor {
	const op = "Mixer"
	if m == nil {
		fail(op, "the layer is nil; create it with NewMixer")
	}
	slots, cols := m.TokenIn.Weight.Cols, m.ChannelIn.Weight.Cols
	if x.Cols() != cols || x.Rows()%slots != 0 {
		fail(op, "the input is %v; give %d rows of %d columns for each item", x, slots, cols)
	}
	y := turned(f, x, slots, cols)
	if sp := x.Space(); sp != nil && m.Dropout > 0 && f.Train() {
		ids := make([]int32, y.Rows())
		for r := range ids { // column c of item i has the id i·d + c
			ids[r] = int32(sp.ID(r/cols*slots)/int64(slots)*int64(cols)) + int32(r%cols)
		}
		y.SetSpace(&Space{IDs: ids})
	}
	y = m.feed(f, m.TokenNorm, m.TokenIn, m.TokenOut, y)
	x = f.Add(x, turned(f, y, cols, slots).SetSpace(x.Space()))
	return f.Add(x, m.feed(f, m.ChannelNorm, m.ChannelIn, m.ChannelOut, x))
}

// feed is a normalisation and the two linear layers.
func (m *Mixer) feed(f *Fwd, norm *LayerNorm, in, out *Linear, x *Tensor) *Tensor {
	x = f.GELU(in.Forward(f, norm.Forward(f, x)))
	if m.Dropout > 0 {
		x = f.Dropout(x, m.Dropout)
	}
	x = out.Forward(f, x)
	if m.Dropout > 0 {
		x = f.Dropout(x, m.Dropout)
	}
	return x
}

// turned returns the transpose [n·cols, rows] of each of the n matrices [rows, cols] in x [n·rows, cols].
func turned(f *Fwd, x *Tensor, rows, cols int) *Tensor {
	n, threads := x.Rows()/rows, f.Config().Threads
	return f.CustomSet("Mixer", []*Tensor{x}, n*cols, rows, func(out []float32) {
		turn(out, x.Data(), n, rows, cols, threads)
	}, func(dOut []float32, dIn [][]float32) {
		turn(dIn[0], dOut, n, cols, rows, threads)
	})
}

// turn writes the transposes of n matrices x [rows, cols] to out.
func turn(out, x []float32, n, rows, cols, threads int) {
	size := rows * cols
	parallel.ForEven(threads, n, max(1, 1<<14/max(size, 1)), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			from, to := x[i*size:(i+1)*size], out[i*size:(i+1)*size]
			for r := range rows {
				for c, v := range from[r*cols : (r+1)*cols] {
					to[c*rows+r] = v
				}
			}
		}
	})
}
