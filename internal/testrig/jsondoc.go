package testrig

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// WantFieldsDocumented holds that a document about JSON lists the fields that values are written with, those of all
// values within them included, and no others. In the document, tables of fields are headed "field", and a field stands
// in backquotes: in the first column, or in the others where a field has some of its own.
func WantFieldsDocumented(tb testing.TB, file string, values ...any) {
	tb.Helper()
	document, err := os.ReadFile(file)
	Must(tb, err)
	fields := map[string]bool{}
	for _, v := range values {
		addFields(fields, reflect.TypeOf(v))
	}
	first, all := documentedFields(string(document))
	for name := range fields {
		if !slices.Contains(all, name) {
			tb.Errorf("%s does not list the field %q", file, name)
		}
	}
	for _, name := range first {
		if !fields[name] {
			tb.Errorf("%s lists a field %q, which there is not", file, name)
		}
	}
}

// addFields adds the names of a type's fields in JSON.
func addFields(names map[string]bool, t reflect.Type) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		addFields(names, t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			switch {
			case name == "" && f.Anonymous:
				addFields(names, f.Type)
			case name != "" && name != "-":
				names[name] = true
				addFields(names, f.Type)
			}
		}
	}
}

var quoted = regexp.MustCompile("`([^`]+)`")

// documentedFields returns what stands in backquotes in the first column of the tables of fields, and in all columns.
func documentedFields(document string) (first, all []string) {
	within := false
	for line := range strings.Lines(document) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 {
			within = false
			continue
		}
		within = within || strings.TrimSpace(cells[1]) == "field"
		if !within {
			continue
		}
		for _, m := range quoted.FindAllStringSubmatch(cells[1], -1) {
			first = append(first, m[1])
		}
		for _, m := range quoted.FindAllStringSubmatch(line, -1) {
			all = append(all, m[1])
		}
	}
	return first, all
}

// WantInDocument holds that a file of the documentation has a text, which is formed as by
// [fmt.Sprintf].
func WantInDocument(tb testing.TB, file, format string, args ...any) {
	tb.Helper()
	document, err := os.ReadFile(file)
	Must(tb, err)
	if text := fmt.Sprintf(format, args...); !strings.Contains(string(document), text) {
		tb.Errorf("%s does not say %q", file, text)
	}
}
