package gnb

import (
	"context"
	"encoding/json"

	"github.com/graphnb/graphnb/gnb/internal/recipe"

	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/gnb/internal/inside"
	"github.com/graphnb/graphnb/gnb/runs"
)

func init() {
	inside.Identify = func(ctx context.Context, ds *Dataset, model string) (*runs.Identity, error) {
		name, err := json.Marshal(model)
		if err != nil {
			return nil, err
		}
		return launcher.Identify(ctx, ds, codeOf("", name))
	}
	inside.TrainArgs = func(ds *Dataset, model string, options any) (json.RawMessage, error) {
		args, err := options.(TrainOptions).args(ds, model)
		if err != nil {
			return nil, err
		}
		return json.Marshal(args)
	}
	inside.Settings = func(ds *Dataset, options any, out int) (loader any, s ModelConfig, err error) {
		if err := recipe.Settings(options.(TrainOptions)).OnlyTrain(); err != nil {
			return nil, s, err
		}
		a, err := recipe.Settings(options.(TrainOptions)).Sized(ds, "", out)
		return loaderOf(a), a.Sizes, err
	}
	inside.OnlyTrain = func(options any) error { return recipe.Settings(options.(TrainOptions)).OnlyTrain() }
	inside.LaunchOptions = func(ds *Dataset, model, options any) any { return options.(TrainOptions).launch(ds, model.(AnyModel)) }
	inside.Optimizing = func(options any, lr float64, epochs int) (any, error) {
		return recipe.Settings(options.(TrainOptions)).Optimizing(lr, epochs)
	}
	inside.SetOptimizing = func(options, how any, c runs.Config) {
		how.(recipe.Optimizing).Set((*recipe.Settings)(options.(*TrainOptions)), c)
	}
	inside.Optimizer = func(worker, net, how any, items int, loader any, epochs int) any {
		w := worker.(*Worker)
		return w.optimizing(net.(Network), how.(recipe.Optimizing), func() int {
			if items == 0 {
				return 1
			}
			p, err := w.planOf(feed.Numbers(items), loader.(Loader))
			w.check(err)
			return p.steps
		}, epochs)
	}
	inside.WithBest = func(worker, net any, use func()) { worker.(*Worker).withBest(net.(Network), use) }
}
