package decode

import (
	"reflect"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/rdmap"
)

// TestDocumentedJSON holds docs/decode-json.md to what is printed.
func TestDocumentedJSON(t *testing.T) {
	testrig.WantFieldsDocumented(t, "../../docs/decode-json.md",
		jsonFound{}, jsonStartup{}, jsonFPDU{}, jsonBytes{}, jsonMissing{}, jsonRead{}, jsonFinding{},
		jsonSummary{}, jsonTotals{},
		headers())
}

// headers returns a struct with the names that the table of opcodes has for headers and their fields.
func headers() any {
	var all []reflect.StructField
	seen := map[string]bool{}
	for op := range rdmap.Opcode(1 << 4) {
		info, _ := op.Info()
		var fields []reflect.StructField
		for _, f := range op.Fields(make([]byte, info.HeaderLen)) {
			if f.Key != "" {
				fields = append(fields, named(f.Key, reflect.TypeFor[uint64](), len(fields)))
			}
		}
		if info.Key != "" && !seen[info.Key] {
			seen[info.Key] = true
			all = append(all, named(info.Key, reflect.StructOf(fields), len(all)))
		}
	}
	return reflect.Zero(reflect.StructOf(all)).Interface()
}

func named(key string, t reflect.Type, i int) reflect.StructField {
	return reflect.StructField{Name: string(rune('A' + i)), Type: t, Tag: reflect.StructTag(`json:"` + key + `"`)}
}
