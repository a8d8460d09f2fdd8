package onnx

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// node is an operation: a NodeProto.
type node struct {
	op      string
	in, out []string
	ints    map[string]int64
	text    map[string]string
	floats  map[string]float32
	layer   int // that recorded it, -1 outside of layers
}

// tensorData is a constant: floats or integers with a shape.
type tensorData struct {
	floats []float32
	ints   []int64
	shape  []int64
}

// graph collects operations and constants.
type graph struct {
	nodes  []node
	names  []string // of constants in their order
	consts map[string]tensorData
	known  map[string]string // the name of a small constant by its contents
	at     int               // of the next name
	layer  int
}

func newGraph() *graph {
	return &graph{consts: map[string]tensorData{}, known: map[string]string{}, layer: -1}
}

// attribute is a named number or text of an operation.
type attribute func(n *node)

func withInt(name string, v int64) attribute { return func(n *node) { n.ints[name] = v } }

func withFloat(name string, v float32) attribute { return func(n *node) { n.floats[name] = v } }

func withText(name, v string) attribute { return func(n *node) { n.text[name] = v } }

func (g *graph) name(of string) string {
	g.at++
	return fmt.Sprintf("%s_%d", strings.ToLower(of), g.at)
}

// do adds an operation with one output and returns that.
func (g *graph) do(op string, in []string, with ...attribute) string {
	return g.doAs(g.name(op), op, in, with...)
}

func (g *graph) doAs(out, op string, in []string, with ...attribute) string {
	g.several(op, in, []string{out}, with...)
	return out
}

func (g *graph) several(op string, in, out []string, with ...attribute) {
	n := node{op: op, in: in, out: out, ints: map[string]int64{}, text: map[string]string{}, floats: map[string]float32{}, layer: g.layer}
	for _, w := range with {
		w(&n)
	}
	g.nodes = append(g.nodes, n)
}

func of(in ...string) []string { return in }

// constant adds a named constant.
func (g *graph) constant(name string, t tensorData) string {
	if _, ok := g.consts[name]; !ok {
		g.names = append(g.names, name)
		g.consts[name] = t
	}
	return name
}

// ints is a constant vector of integers.
func (g *graph) ints(v ...int64) string {
	key := fmt.Sprint("i", v)
	if name, ok := g.known[key]; ok {
		return name
	}
	name := g.constant("ints"+strconv.Itoa(len(g.known)), tensorData{ints: v, shape: []int64{int64(len(v))}})
	g.known[key] = name
	return name
}

// scalar is a constant integer without dimensions.
func (g *graph) scalar(v int64) string {
	key := fmt.Sprint("s", v)
	if name, ok := g.known[key]; ok {
		return name
	}
	name := g.constant("int"+strconv.Itoa(len(g.known)), tensorData{ints: []int64{v}})
	g.known[key] = name
	return name
}

// number is a constant without dimensions.
func (g *graph) number(v float32) string {
	key := fmt.Sprint("f", math.Float32bits(v))
	if name, ok := g.known[key]; ok {
		return name
	}
	name := g.constant("number"+strconv.Itoa(len(g.known)), tensorData{floats: []float32{v}})
	g.known[key] = name
	return name
}

// used returns the nodes on which outputs depend, in their order, and the names that they read.
func (g *graph) used(outputs []string) (nodes []node, read map[string]bool) {
	read = map[string]bool{}
	for _, o := range outputs {
		read[o] = true
	}
	for i := len(g.nodes) - 1; i >= 0; i-- {
		n := g.nodes[i]
		if !slices.ContainsFunc(n.out, func(o string) bool { return read[o] }) {
			continue
		}
		for _, x := range n.in {
			read[x] = true
		}
		nodes = append(nodes, n)
	}
	slices.Reverse(nodes)
	return nodes, read
}

// encode is the NodeProto.
func (n *node) encode() (m message) {
	for _, x := range n.in {
		m.string(nodeInput, x)
	}
	for _, x := range n.out {
		m.string(nodeOutput, x)
	}
	name := n.out[0]
	if n.layer >= 0 {
		name = fmt.Sprintf("layer%d/%s", n.layer, name)
	}
	m.string(nodeName, name)
	m.string(nodeOpType, n.op)
	for _, a := range n.attributes() {
		m.bytes(nodeAttribute, a)
	}
	return m
}

func (n *node) attributes() (all []message) {
	add := func(name string, kind int64, value func(a *message)) {
		var a message
		a.string(attributeName, name)
		value(&a)
		a.int(attributeKind, kind)
		all = append(all, a)
	}
	for _, name := range sorted(n.ints) {
		add(name, attributeInt, func(a *message) { a.int(attributeI, n.ints[name]) })
	}
	for _, name := range sorted(n.floats) {
		add(name, attributeFloat, func(a *message) { a.float(attributeF, n.floats[name]) })
	}
	for _, name := range sorted(n.text) {
		add(name, attributeString, func(a *message) { a.string(attributeS, n.text[name]) })
	}
	return all
}

// encode is the TensorProto.
func (t *tensorData) encode(name string) (m message) {
	for _, d := range t.shape {
		m.int(tensorDims, d)
	}
	raw := make([]byte, 0, 4*len(t.floats)+8*len(t.ints))
	if t.ints != nil {
		m.int(tensorType, typeInt64)
		for _, v := range t.ints {
			raw = appendInt64(raw, v)
		}
	} else {
		m.int(tensorType, typeFloat)
		for _, v := range t.floats {
			raw = appendFloat(raw, v)
		}
	}
	m.string(tensorName, name)
	m.bytes(tensorRaw, raw)
	return m
}

func sorted[V any](m map[string]V) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, cmp.Compare[string])
	return keys
}
