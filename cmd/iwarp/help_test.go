package main

import (
	"bytes"
	"cmp"
	"reflect"
	"strings"
	"testing"
)

// TestHelpTellsStatuses: the help of every command, and of all together, tells of the exit statuses.
func TestHelpTellsStatuses(t *testing.T) {
	helps := [][]string{{"--help"}}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[cli]()) {
		if _, command := field.Tag.Lookup("cmd"); command {
			helps = append(helps, []string{cmp.Or(field.Tag.Get("name"), strings.ToLower(field.Name)), "--help"})
		}
	}
	if len(helps) < 10 {
		t.Fatalf("%q are not all commands", helps)
	}
	for _, args := range helps {
		var out, errs bytes.Buffer
		status := run(args, streams{&out, &errs})
		if text := strings.Join(strings.Fields(out.String()), " "); status != statusFine || !strings.Contains(text, exitStatuses) {
			t.Errorf("iwarp %v: status %d: %s%s", args, status, out.Bytes(), errs.Bytes())
		}
	}
}
