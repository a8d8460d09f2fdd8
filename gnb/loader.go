package gnb

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/sample"
)

// DeclareSampler declares a type of sampler of a program's own under a name that must be unique in the program, so
// that a [Loader] with such a sampler can be in a program's argument: workers make it by build and set what JSON
// holds of it, so what the sampler needs must be in exported fields. Declare it at package level:
//
//	var _ = gnb.DeclareSampler("heavy", func() heavy { return heavy{} })
//
// P is the type that Loader.Sampler, Loader.Frontier or Loader.Owners holds, such as heavy or *heavy. The library
// declares its own: sample.Fanouts, Labor, sample.Weighted, *sample.RelationFanouts and sample.RangeOwners. A sampler
// that a program makes itself in its workers needs no declaration.
func DeclareSampler[P any](name string, build func() P) string {
	feed.Declared.Add(name, build != nil, build, func() any { return build() })
	feed.Declared.Name(name, reflect.TypeFor[P]())
	return name
}

// DeclareLoss declares a loss of a program's own under a name that must be unique in the program, for
// [TrainOptions].OwnLoss: a function of a batch's logits, a row per seed, and the batch, which has the labels. Declare it at
// package level:
//
//	var focal = gnb.DeclareLoss("focal", func(b *gnb.Batch, logits *nn.Tensor) *nn.Loss { … })
func DeclareLoss(name string, loss func(b *Batch, logits *nn.Tensor) *nn.Loss) string {
	losses.Add(name, loss != nil, loss, loss)
	return name
}

var (
	_ = DeclareSampler("gnb.fanouts", func() Fanouts { return nil })
	_ = DeclareSampler("gnb.labor", func() Labor { return Labor{} })
	_ = DeclareSampler("gnb.weighted", func() sample.Weighted { return sample.Weighted{} })
	_ = DeclareSampler("gnb.relations", func() *sample.RelationFanouts { return &sample.RelationFanouts{} })
	_ = DeclareSampler("gnb.ranges", func() sample.RangeOwners { return 0 })
)

// loaderFields is a Loader without methods.
type loaderFields Loader

// loaderJSON is a Loader in JSON: its own fields take the place of those of the same names.
type loaderJSON struct {
	loaderFields
	Sampler  json.RawMessage `json:",omitempty"`
	Frontier json.RawMessage `json:",omitempty"`
	Owners   json.RawMessage `json:",omitempty"`
}

// MarshalJSON implements [json.Marshaler], for arguments of programs. It fails for a sampler whose type is not
// declared (see [DeclareSampler]).
func (l Loader) MarshalJSON() ([]byte, error) {
	j := loaderJSON{loaderFields: loaderFields(l)}
	var err error
	for _, of := range []struct {
		from any
		to   *json.RawMessage
	}{{l.Sampler, &j.Sampler}, {l.Frontier, &j.Frontier}, {l.Owners, &j.Owners}} {
		if *of.to, err = feed.Declared.Encode(of.from); err != nil {
			return nil, err
		}
	}
	return json.Marshal(j)
}

// UnmarshalJSON implements [json.Unmarshaler].
func (l *Loader) UnmarshalJSON(raw []byte) error {
	var j loaderJSON
	if err := json.Unmarshal(raw, &j); err != nil {
		return err
	}
	*l = Loader(j.loaderFields)
	return cmp.Or(decodeInto(j.Sampler, &l.Sampler), decodeInto(j.Frontier, &l.Frontier), decodeInto(j.Owners, &l.Owners))
}

// decodeInto sets an interface of a Loader to the value of a JSON.
func decodeInto[T any](raw json.RawMessage, to *T) error {
	v, err := feed.Declared.Decode(raw)
	if err != nil || v == nil {
		return err
	}
	x, ok := v.(T)
	if !ok {
		return fmt.Errorf("gnb: a %T is not a %s", v, reflect.TypeFor[T]().Name())
	}
	*to = x
	return nil
}
