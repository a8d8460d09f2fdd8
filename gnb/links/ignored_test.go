package links

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/optim"
)

// Each option of gnb.Train changes a run of Train and of Embed, or is refused: none is ignored.
func TestNoOptionIsIgnored(t *testing.T) {
	ds := dataset.Karate()
	train := func(o gnb.TrainOptions) (any, error) { a, err := (Options{TrainOptions: o}).args(ds); return a, err }
	embed := func(o gnb.TrainOptions) (any, error) {
		a, err := (EmbedOptions{TrainOptions: o}).args(ds)
		return a, err
	}
	graph := func(o gnb.TrainOptions) (any, error) {
		a, err := (EmbedOptions{Model: gnb.SAGE, TrainOptions: o}).args(ds)
		return a, err
	}
	of := reflect.TypeFor[gnb.TrainOptions]()
	for name, args := range map[string]func(gnb.TrainOptions) (any, error){"Train": train, "Embed": embed, "Embed by a model": graph} {
		text := func(o gnb.TrainOptions) (string, error) {
			a, err := args(o)
			if err != nil {
				return "", err
			}
			b, err := json.Marshal(a)
			if err != nil {
				t.Fatal(err)
			}
			return string(b), nil
		}
		want, err := text(gnb.TrainOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range of.NumField() {
			f := of.Field(i)
			if f.Anonymous || f.Name == "Workers" { // from here on the options of a run, which gnb.Launch takes
				break
			}
			var o gnb.TrainOptions
			v := reflect.ValueOf(&o).Elem().Field(i)
			switch v.Kind() {
			case reflect.Int:
				v.SetInt(7)
			case reflect.Float64:
				v.SetFloat(0.25)
			case reflect.Bool:
				v.SetBool(true)
			case reflect.String:
				v.SetString(map[string]string{"Sampler": "labor", "Norm": "layer", "JK": "max", "Optimizer": "adamw", "Eval": "none", "BestBy": "loss", "OwnLoss": "own", "Metric": "ap"}[f.Name])
			case reflect.Map:
				v.Set(reflect.ValueOf(map[string][]int{"r": {1}}))
			case reflect.Slice:
				v.Set(reflect.MakeSlice(v.Type(), 2, 2))
			}
			switch f.Name {
			case "Schedule":
				o.Schedule = optim.Cosine(0)
			case "Average":
				o.Average = optim.Averaging{Decay: 0.9}
			}
			if got, err := text(o); err == nil && got == want && !(name != "Train" && f.Name == "Eval") { // Embed never evaluates
				t.Errorf("%s ignores %s", name, f.Name)
			}
		}
	}
}
