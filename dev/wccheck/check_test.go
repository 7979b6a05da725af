package main

import (
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"
)

// Each call that overlooks an error is reported, and no other.
func TestCheck(t *testing.T) {
	analysistest.Run(t, "..", analyzer, "./wccheck/testdata/a")
}
