package rest

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// TestStream: events are the same however the server writes them.
func TestStream(t *testing.T) {
	long := strings.Repeat("x", 3*lineBuffer)
	usual := `{"type":"ADDED","object":{"a":"` + long + `"}}` + "\n" + `{"type":"DELETED","object":{"b":{}}}` + "\n"
	both := fmt.Sprint(`ADDED {"a":"`, long, `"} DELETED {"b":{}} `)
	broken := errors.New("connection reset")
	for name, test := range map[string]struct {
		sent string
		end  error
		want string
	}{
		"usual":              {usual, io.EOF, both + "EOF"},
		"without newlines":   {strings.ReplaceAll(usual, "\n", ""), io.EOF, both + "EOF"},
		"two lines":          {strings.ReplaceAll(usual, `,"object"`, ",\n"+`"object"`), io.EOF, both + "EOF"},
		"another order":      {`{"object":{"b":{}},"type":"DELETED"}` + "\n" + usual, io.EOF, `DELETED {"b":{}} ` + both + "EOF"},
		"more members":       {`{"type":"ADDED","object":{},"more":1}` + "\n", io.EOF, "ADDED {} EOF"},
		"a type in escapes":  {`{"type":"\u0041DDED","object":{}}` + "\n", io.EOF, "ADDED {} EOF"},
		"cut":                {usual + `{"type":"ADDED","obj`, io.EOF, both + "unexpected EOF"},
		"cut after an event": {usual + `{"type":"ADDED","object":{}}`, io.EOF, both + "ADDED {} EOF"},
		"broken":             {usual + `{"type":"ADDED","obj`, broken, both + broken.Error()},
		"HTML":               {"<html>\n", io.EOF, "not a watch event: invalid character '<' looking for beginning of value"},
		"another kind":       {`["ADDED"]` + "\n", io.EOF, "not a watch event: json: cannot unmarshal array into Go value of type rest.Event"},
		"nothing":            {"", io.EOF, "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, buffer := range []int{lineBuffer, smallLineBuffer} {
				body := io.MultiReader(strings.NewReader(test.sent), iotest.ErrReader(test.end))
				s := newStream(io.NopCloser(iotest.HalfReader(body)), buffer)
				var got strings.Builder
				for {
					event, err := s.Next()
					if err != nil {
						got.WriteString(err.Error())
						break
					}
					fmt.Fprintf(&got, "%s %s ", event.Type, event.Object)
				}
				if got.String() != test.want {
					t.Errorf("with %d bytes read %.200q, want %.200q", buffer, got.String(), test.want)
				}
			}
		})
	}
}
