package driver

import (
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
)

func TestMain(m *testing.M) { testrig.Main(m) }
