package main

import (
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/perf"
)

// numbered gives each number in a struct, and in those in it, a value of its own, and returns their fields.
func numbered(v reflect.Value, fields map[int]string) {
	for i := range v.NumField() {
		n := 1001 + len(fields)
		switch f := v.Field(i); f.Kind() {
		case reflect.Struct:
			numbered(f, fields)
			continue
		case reflect.Float64:
			f.SetFloat(float64(n))
		case reflect.Int, reflect.Int64:
			f.SetInt(int64(n))
		default:
			continue
		}
		fields[n] = v.Type().Field(i).Name
	}
}

// TestAllColumns: with --all-columns each figure of a result is in its row.
func TestAllColumns(t *testing.T) {
	var r perf.Result
	fields := make(map[int]string)
	r.TCP = new(perf.Figures)
	numbered(reflect.ValueOf(&r).Elem(), fields)
	numbered(reflect.ValueOf(r.TCP).Elem(), fields)
	r.Quartiles = map[string][2]float64{"ratio_bw": {2001, 2002}}
	var row []string
	for _, c := range perfColumns(nil, true, true, false, true) {
		row = append(row, c.text(r))
	}
	text := strings.Join(row, " ")
	fields[2001], fields[2002] = "a quartile", "a quartile"
	for n, name := range fields {
		if name == "Ahead" { // in per cent
			n *= 100
		}
		if !regexp.MustCompile(`\b`+strconv.Itoa(n)+`\b`).MatchString(text) && name != "Op" {
			t.Errorf("%s (%d) is not in the row: %s", name, n, text)
		}
	}
	if len(fields) < 50 {
		t.Errorf("%d figures in a result", len(fields))
	}
	r.Inconclusive = []string{"ratio_cpu"}
	r.Quartiles["ratio_cpu"] = [2]float64{0.29, 0.49}
	if all, usual := ratioText(r, "ratio_cpu", true), ratioText(r, "ratio_cpu", false); all != "busy 0.29-0.49" || usual != "busy" {
		t.Errorf("of an inconclusive ratio: %q, and usually %q", all, usual)
	}
}
