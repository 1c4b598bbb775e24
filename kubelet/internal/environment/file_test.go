package environment

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestFileKeys(t *testing.T) {
	const certificate = "-----BEGIN-----\n\n  abc=\n-----END-----\n"
	for name, c := range map[string]struct{ text, want, err string }{
		"alone":               {"K='v'", "v", ""},
		"among others":        {"# comment\n\nA='1'\n \t# K='no'\n\tK='v'\nB='2'\n", "v", ""},
		"as it is":            {`K='  $HOME ${X} "#\n=  '`, `  $HOME ${X} "#\n=  `, ""},
		"several lines":       {"A='1\n2'\nK='" + certificate + "'\n", certificate, ""},
		"empty":               {"K=''\n", "", `key "K" not found in file "f"`},
		"empty, and another":  {"K=''\nK='2'\n", "", `key "K" not found in file "f"`},
		"a comment behind it": {"K='v' # comment\n", "v", ""},
		"the first":           {"K='1'\nK='2'\n", "1", ""},
		"carriage returns":    {"A='1'\r\nK='v'\r\n", "v", ""},
		"not there":           {"A='1'\n", "", `key "K" not found in file "f"`},
		"no key":              {"='v'\n", "", "line 1 is not KEY='value'"},
		"no assignment":       {"A='1\n2'\nbroken\nK='v'\n", "", "line 3 is not KEY='value'"},
		"space before":        {"K ='v'\n", "", "line 1: there may be no space before '='"},
		"space behind":        {"K= 'v'\n", "", "line 1: the value is not in single quotes"},
		"no quotes":           {"A='1'\nK=v\n", "", "line 2: the value is not in single quotes"},
		"double quotes":       {`K="v"`, "", "not in single quotes"},
		"open":                {"K='v\n", "", "line 1: the quote is not closed"},
		"open, and another":   {"K='v\nA='1'\n", "", "line 1: there is something behind the closing quote"},
		"two values":          {"K='a''b'", "", "behind the closing quote"},
		"no comment":          {"K='a'#b", "", "behind the closing quote"},
	} {
		m := &builder{Container: Container{ReadFile: func(volume, path string) ([]byte, error) {
			if volume != "v" || path != "f" {
				return nil, fmt.Errorf("%s/%s: %w", volume, path, fs.ErrNotExist)
			}
			return []byte(c.text), nil
		}}}
		got, err := m.fileKey(&corev1.FileKeySelector{VolumeName: "v", Path: "f", Key: "K"})
		switch {
		case c.err != "":
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: %v, want %q", name, err, c.err)
			}
		case err != nil || *got != c.want:
			t.Errorf("%s: %v, %v; want %q", name, got, err, c.want)
		}
		optional := true
		for _, ref := range []corev1.FileKeySelector{{VolumeName: "v", Path: "none", Key: "K"}, {VolumeName: "v", Path: "f", Key: "none"}} {
			if c.err != "" && ref.Path == "f" {
				continue
			}
			if _, err := m.fileKey(&ref); err == nil {
				t.Errorf("%s: %+v was found", name, ref)
			}
			ref.Optional = &optional
			if got, err := m.fileKey(&ref); got != nil || err != nil {
				t.Errorf("%s, optional: %v, %v", name, got, err)
			}
		}
	}
}
