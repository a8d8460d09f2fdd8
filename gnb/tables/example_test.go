package tables_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/graphnb/graphnb/gnb/tables"
)

const (
	customers = `id,plan,spent,since,churned
anna,gold,12.5,2021-03-04,no
ben,basic,,2023-11-20,yes
cleo,basic,7.5,2022-06-01,no
dan,gold,40,2020-01-15,yes
`
	calls = `caller,callee,weight
anna,ben,3
ben,cleo,1
dan,anna,2
`
)

// folder writes the example's tables into a temporary folder.
func folder() (dir string, remove func()) {
	dir, err := os.MkdirTemp("", "tables")
	if err != nil {
		panic(err)
	}
	for name, text := range map[string]string{"nodes.csv": customers, "edges.csv": calls} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			panic(err)
		}
	}
	return dir, func() { os.RemoveAll(dir) }
}

func ExampleRead() {
	dir, remove := folder()
	defer remove()
	files := tables.Of(filepath.Join(dir, "nodes.csv"), filepath.Join(dir, "edges.csv"))
	ds, err := tables.Read(context.Background(), filepath.Join(dir, "churn"), files, tables.Options{
		Kinds: map[string]tables.Kind{"churned": tables.Label}, Fit: "all",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ds.Close()
	ids, err := ds.IDs()
	fmt.Println(ids, err)
	// Output:
	// tables: guessed: edges.csv: the column "caller" is the source, by its place; --kinds caller=skip reads it otherwise
	// tables: guessed: edges.csv: the column "callee" is the target, by its place; --kinds callee=skip reads it otherwise
	// tables: guessed: nodes.csv: no column says the split, so labelled nodes are divided by seed 0 and their id: 60 % train, 20 % val, 20 % test (4)
	// nodes: 9 features  kind
	//   id               id        by its name
	//   plan             category  2 values; 2 columns
	//   spent            number    numbers; (x - 20) / 14.29, one where missing
	//   since            date      dates; 5 columns
	//   churned          label     as given; 2 classes: no, yes
	// edges     kind
	//   caller  source  by its place
	//   callee  target  by its place
	//   weight  weight  by its name
	// [anna ben cleo dan] <nil>
}

func ExampleLook() {
	dir, remove := folder()
	defer remove()
	files, err := tables.Folder(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	recipe, err := tables.Look(context.Background(), files, tables.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(recipe.Nodes[0].Columns[4].Name, "is a", recipe.Nodes[0].Columns[4].Kind)
	// Output:
	// tables: guessed: edges.csv: the column "caller" is the source, by its place; --kinds caller=skip reads it otherwise
	// tables: guessed: edges.csv: the column "callee" is the target, by its place; --kinds callee=skip reads it otherwise
	// churned is a category
}

func ExampleOf() {
	fmt.Println(tables.Of("customers.csv", "calls.parquet").Edges[0].Path)
	// Output: calls.parquet
}

func ExampleFolder() {
	dir, remove := folder()
	defer remove()
	files, err := tables.Folder(dir)
	fmt.Println(len(files.Nodes), len(files.Edges), err)
	// Output: 1 1 <nil>
}

func ExampleReadRecipe() {
	dir, remove := folder()
	defer remove()
	files, err := tables.Folder(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	ds, err := tables.Read(context.Background(), filepath.Join(dir, "churn"), files, tables.Options{Quiet: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ds.Close()
	recipe, err := tables.ReadRecipe(ds.Dir())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(recipe.Nodes[0].Features()[:4])
	// Output: [plan=basic plan=gold spent spent missing]
}

func ExampleAppend() {
	dir, remove := folder()
	defer remove()
	files, err := tables.Folder(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	ds, err := tables.Read(ctx, filepath.Join(dir, "churn"), files, tables.Options{Quiet: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ds.Close()
	for name, text := range map[string]string{
		"new.csv":       "id,plan,spent,since,churned\neve,gold,20,2024-02-29,\n",
		"new-calls.csv": "caller,callee,weight\neve,anna,1\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			fmt.Println(err)
			return
		}
	}
	more, err := tables.Append(ctx, filepath.Join(dir, "more"), ds, tables.Of(filepath.Join(dir, "new.csv"), filepath.Join(dir, "new-calls.csv")), tables.AppendOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer more.Close()
	ids, err := more.IDs()
	fmt.Println(ids, more.Splits[tables.NewSplit], err)
	// Output: [anna ben cleo dan eve] [4] <nil>
}
