package endings

import (
	"testing"

	"github.com/goiwarp/iwarp/internal/e2e/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }
