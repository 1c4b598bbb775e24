package bodylimit

import "iter"

// Structure yields the bytes of a JSON text that are outside its strings.
func Structure(text []byte) iter.Seq[byte] {
	return func(yield func(byte) bool) {
		quoted := false
		for i := 0; i < len(text); i++ {
			switch b := text[i]; {
			case quoted && b == '\\':
				i++
			case b == '"':
				quoted = !quoted
			case quoted:
			case !yield(b):
				return
			}
		}
	}
}
