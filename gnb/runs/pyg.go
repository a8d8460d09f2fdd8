package runs

import (
	"fmt"
	"strings"
)

// PyG returns the lines of Python that make the model in PyTorch Geometric and load a file of its weights, such as
// [Run.BestWeights], strictly: every name and shape is PyG's. The activation, heads, normalisation and jumping knowledge are the model's. They need
// the packages torch_geometric and safetensors. It fails for a model that PyG's classes do not have.
func (m *ModelInfo) PyG(weights string) (string, error) {
	s := m.Config
	class := map[string]string{"sage": "GraphSAGE", "gcn": "GCN", "gat": "GAT", "gatv2": "GAT", "gin": "GIN"}[m.Name]
	attention := m.Name == "gat" || m.Name == "gatv2"
	switch {
	case class == "":
		return "", fmt.Errorf("gnb: PyTorch Geometric has no class with the parameters of the model %q; it has those of sage, gcn, gat, gatv2 and gin", m.Name)
	case s.Embedding || len(s.Learned) > 0:
		return "", fmt.Errorf("gnb: the input of this %s are learned rows of nodes, which PyTorch Geometric's class does not have", m.Name)
	case s.EdgeWeights && m.Name != "gcn":
		return "", fmt.Errorf("gnb: PyTorch Geometric's %s does not read edge weights, and this model does; train without EdgeWeights to load the weights there", class)
	case s.Arrangement != "" || s.PreLinear || s.JK == "sum":
		return "", fmt.Errorf("gnb: PyTorch Geometric's %s does not have the Arrangement, the PreLinear or the sum of jumping knowledge of this model; nn.Between in package graphops/nn tells how its layers and parameters are put together", class)
	case s.ScaleInput:
		return "", fmt.Errorf("gnb: this model divides rows of features by their root mean squares, which PyTorch Geometric's %s does not; train without ScaleInput to load the weights there", class)
	case s.Residual:
		return "", fmt.Errorf("gnb: PyTorch Geometric's %s has no residual connections; train without Residual to load the weights there", class)
	case attention && s.OutHeads != 0 && s.OutHeads != max(s.Heads, 1):
		return "", fmt.Errorf("gnb: all layers of PyTorch Geometric's GAT have the same number of heads, and this model has %d and %d; train without OutHeads to load the weights there", max(s.Heads, 1), s.OutHeads)
	case s.Layers == 1 && s.JK == "" || s.Hidden < 1:
		return "", fmt.Errorf("gnb: PyTorch Geometric's %s has at least one hidden layer; take a convolution by itself for this one", class)
	}
	args := []string{fmt.Sprint(s.In), fmt.Sprint(s.Hidden), fmt.Sprint(s.Layers), fmt.Sprint(s.Out)}
	add := func(format string, v ...any) { args = append(args, fmt.Sprintf(format, v...)) }
	if s.Dropout > 0 {
		add("dropout=%v", s.Dropout)
	}
	activation := s.Activation
	if activation == "" && attention {
		activation = "elu"
	}
	if activation != "" && activation != "relu" {
		add("act=%q", activation)
	}
	switch s.Norm {
	case "batch":
		add(`norm="batch"`)
	case "layer":
		add(`norm="layer", norm_kwargs={"mode": "node"}`)
	}
	if s.JK != "" {
		add("jk=%q", s.JK)
	}
	if attention {
		add("heads=%d", max(s.Heads, 1))
	}
	if m.Name == "gatv2" {
		add("v2=True")
		if s.EdgeDim > 0 {
			add("edge_dim=%d", s.EdgeDim)
		}
	}
	return fmt.Sprintf("from safetensors.torch import load_file\nfrom torch_geometric.nn import %s\n\nmodel = %s(%s)\nmodel.load_state_dict(load_file(%q))\nmodel.eval()\n", class, class, strings.Join(args, ", "), weights), nil
}
