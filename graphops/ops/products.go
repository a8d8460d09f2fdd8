package ops

// Product is one product in the sum of an [Epilogue]: X [m,K] times W, which is [K,n] or, with T,
// [n,K] and transposed.
type Product struct {
	X, W Buffer
	K    int
	T    bool
}

// Epilogue is applied to a sum of products, element by element: Base [m,n] (no elements: none), which the products are
// added to, comes before the sum, the bias [n] (no elements: none) is added to each row, ReLU sets negative elements to 0, and Drop, if not nil, is the dropout mask.
// If Keep [MaskWords] has elements, it receives one bit per element, set if the element is neither
// negative nor dropped.
type Epilogue struct {
	Base Buffer
	Bias Buffer
	ReLU bool
	Drop *DropoutKey
	Keep Buffer
}

// Masks reports whether elements can become 0.
func (e *Epilogue) Masks() bool { return e.ReLU || e.Drop != nil }

// Scale is the factor by which kept elements are multiplied.
func (e *Epilogue) Scale() float32 {
	if e.Drop == nil {
		return 1
	}
	return e.Drop.Scale
}

// ProductGrad says where to write the gradients of a [Product], if they are needed: DX [m,K] and
// DW, of W's shape. With Acc they are added.
type ProductGrad struct {
	DX, DW       Buffer
	WantX, WantW bool
	AccX, AccW   bool
}
