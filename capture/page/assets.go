package page

import (
	"embed"
	"html/template"
	"strings"
	"sync"

	"github.com/goiwarp/iwarp/internal/htmlpage"
)

//go:embed page.html js/*.js
var files embed.FS

// scripts are the parts of the script, in their order.
var scripts = [...]string{"data", "words", "strip", "track", "draw", "time", "ladder", "table", "view", "find", "list", "main"}

// An assets is what every page has.
type assets struct {
	html   *template.Template
	script template.JS
}

// shared are those of all pages. They are made for the first one, as most runs of the command make none.
var shared = sync.OnceValue(func() *assets {
	return &assets{html: htmlpage.Parse(files, "page.html"), script: template.JS(joined())}
})

// joined is the script: its parts in one scope of their own.
func joined() string {
	var b strings.Builder
	b.WriteString("\"use strict\";\n(() => {\n")
	for _, name := range scripts {
		b.WriteString(read("js/" + name + ".js"))
	}
	b.WriteString("})();\n")
	return b.String()
}

func read(name string) string {
	b, err := files.ReadFile(name)
	if err != nil {
		panic(err) // it is embedded
	}
	return string(b)
}
