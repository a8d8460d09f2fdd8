package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

func TestTableIsCurrent(t *testing.T) {
	header, err := os.ReadFile("../include/cuda.h")
	if err != nil {
		t.Fatal(err)
	}
	want, err := Table(string(header))
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../zz_table.c")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("zz_table.c is not what include/cuda.h gives; run go generate ./cuda/internal/shim")
	}
}

func TestTable(t *testing.T) {
	text, err := Table("\nCUresult cuInit(unsigned int);\nCUresult cuCtxSynchronize(void);\nCUresult cuMemAlloc_v2(CUdeviceptr *, size_t);\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"HIDDEN CUresult cuCtxSynchronize(void) { return call.cuCtxSynchronize ? call.cuCtxSynchronize() : gnb_absent(\"cuCtxSynchronize\"); }",
		"HIDDEN CUresult cuMemAlloc_v2(CUdeviceptr * a0, size_t a1) {",
		"{\"cuMemAlloc_v2\", (void **)&call.cuMemAlloc_v2},",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	if strings.Contains(string(text), "CUresult cuInit") {
		t.Error("cuInit is in the table, although the shim implements it")
	}
	for name, header := range map[string]string{
		"nothing":            "\nCUresult cuInit(unsigned int);\n",
		"function parameter": "\nCUresult cuInit(unsigned int);\nCUresult cuLaunchHostFunc(CUstream, void (*)(void *), void *);\n",
	} {
		if _, err := Table(header); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
