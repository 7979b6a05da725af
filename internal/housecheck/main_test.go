package housecheck

import (
	"fmt"
	"os"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// must ends the test if one of its steps has failed.
var must = testrig.Must

// TestMain runs the tests in the root of the repository: all their paths begin there.
func TestMain(m *testing.M) {
	root, err := testrig.Root()
	if err == nil {
		err = os.Chdir(root)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	testrig.Main(m)
}
