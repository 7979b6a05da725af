package page

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"html/template"
	"strings"
)

//go:embed page.html page.css js/*.js
var files embed.FS

// scripts are the parts of the script, in their order.
var scripts = [...]string{"data", "words", "track", "draw", "table", "view", "main"}

var (
	head   = template.Must(template.ParseFS(files, "page.html"))
	style  = template.CSS(read("page.css"))
	script = template.JS(joined())
	policy = "default-src 'none'; base-uri 'none'; form-action 'none'; style-src '" + hash(string(style)) +
		"'; script-src '" + hash(string(script)) + "'"
)

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

// hash is how a Content-Security-Policy names a text that it lets through.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
