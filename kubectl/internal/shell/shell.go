package shell

import "strings"

// plain are the signs that a shell takes for themselves everywhere in a word.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:@%+=,"

// Word is a text as one word for a shell, in quotes if it needs them.
func Word(text string) string {
	if text != "" && strings.Trim(text, plain) == "" {
		return text
	}
	return Quoted(text)
}

// Quoted is a text in a shell's quotes.
func Quoted(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
