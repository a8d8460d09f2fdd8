package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

// crdFile is the file of a CustomResourceDefinition in a module of Go.
type crdFile struct{ module, file string }

func trainerCRD(plural string) crdFile {
	return crdFile{"github.com/kubeflow/trainer/v2", "manifests/base/crds/trainer.kubeflow.org_" + plural + ".yaml"}
}

var jobsetCRD = crdFile{"sigs.k8s.io/jobset", "config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml"}

// check checks an object against the definition as an API server does: unknown fields, the schema,
// keys of lists, and CEL rules. It returns the object with its defaults, as JSON.
func (c crdFile) check(text []byte) ([]byte, error) {
	schema, err := c.schema()
	if err != nil {
		return nil, err
	}
	s, err := structural.NewStructural(schema)
	if err != nil {
		return nil, err
	}
	var o map[string]any
	if err := yaml.Unmarshal(text, &o); err != nil {
		return nil, err
	}
	if unknown := pruning.PruneWithOptions(o, s, true, structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}); len(unknown) > 0 {
		return nil, fmt.Errorf("fields that the schema does not have: %s", strings.Join(unknown, ", "))
	}
	defaulting.Default(o, s)
	validator, _, err := validation.NewSchemaValidator(schema)
	if err != nil {
		return nil, err
	}
	errs := validation.ValidateCustomResource(nil, o, validator)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, s, o)...)
	if v := cel.NewValidator(s, true, celconfig.PerCallLimit); v != nil {
		more, _ := v.Validate(context.Background(), nil, s, o, nil, celconfig.RuntimeCELCostBudget)
		errs = append(errs, more...)
	}
	if err := errs.ToAggregate(); err != nil {
		return nil, err
	}
	return yaml.Marshal(o)
}

// schema reads the definition's schema.
func (c crdFile) schema() (*apiextensions.JSONSchemaProps, error) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", c.module).Output()
	if err != nil {
		return nil, fmt.Errorf("looking for the module %s: %w", c.module, err)
	}
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), c.file))
	if err != nil {
		return nil, err
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(text, &crd); err != nil {
		return nil, err
	}
	for _, v := range crd.Spec.Versions {
		if v.Storage {
			out := &apiextensions.JSONSchemaProps{}
			return out, apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v.Schema.OpenAPIV3Schema, out, nil)
		}
	}
	return nil, errors.New("the definition has no stored version")
}
