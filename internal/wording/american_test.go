package wording_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"unicode"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// british are words that are spelled otherwise in America.
var british = regexp.MustCompile(`^(?:` +
	`(?:behavi|col|neighb|fav|hon|flav|lab|harb)our.*|` +
	`(?:cancel|label|travel|signal|model|channel|tunnel|level|total|dial)l(?:ed|ing)|` +
	`(?:cent|met|fib)re|(?:def|off|lic)ence|(?:cata|ana)logues?|programmes?|artefacts?|judgement|` +
	`(?:re|un)?(?:synchron|organ|recogn|initial|normal|optim|real|serial|summar|minim|maxim|general|special|emphas|final|standard|author|equal|visual)is(?:e[ds]?|ing|ation)|` +
	`(?:anal|paral)ys(?:e|ed|er|ing)|grey|(?:mis)?spelt|learnt|whilst|towards)$`)

// written are the files that people read.
var written = []string{".go", ".md", ".js", ".css", ".html", ".yml", ".sh"}

// TestAmerican: all of the module is in American English.
func TestAmerican(t *testing.T) {
	files, known := 0, map[string]bool{}
	testrig.Must(t, filepath.WalkDir(filepath.Join("..", ".."), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "testdata"):
			return filepath.SkipDir
		case d.IsDir() || !slices.Contains(written, filepath.Ext(path)) || d.Name() == "american_test.go":
			return nil
		}
		files++
		text, err := os.ReadFile(path)
		eachWord(text, func(word []byte) {
			is, ok := known[string(word)]
			if !ok {
				is = british.Match(bytes.ToLower(word))
				known[string(word)] = is
			}
			if is {
				t.Errorf("%s: %s", path, word)
			}
		})
		return err
	}))
	if files < 500 {
		t.Errorf("only %d files were found", files)
	}
}

// eachWord calls f with each word of a text. A name that is written in camel case is several.
func eachWord(text []byte, f func(word []byte)) {
	for _, word := range bytes.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) }) {
		from := 0
		for i := 1; i < len(word); i++ {
			if lower(word[i-1]) && !lower(word[i]) {
				f(word[from:i])
				from = i
			}
		}
		f(word[from:])
	}
}

func lower(c byte) bool { return 'a' <= c && c <= 'z' }

// TestBritish tells words that are British from others.
func TestBritish(t *testing.T) {
	for text, want := range map[string]int{
		"a Behaviour, which was cancelled": 2, "ErrCancelled": 1, "a licence for dialling": 2,
		"resynchronisation in the centre": 2, "analysed": 1,
		"a Behavior, which was canceled": 0, "ErrCanceled, a cancellation": 0, "a realistic License": 0,
		"aria-labelledby": 0, "dialogue": 0,
	} {
		got := 0
		eachWord([]byte(text), func(word []byte) {
			if british.Match(bytes.ToLower(word)) {
				got++
			}
		})
		if got != want {
			t.Errorf("%q: %d words are British, want %d", text, got, want)
		}
	}
}
