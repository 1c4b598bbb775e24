package validationrules

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"kctl/apiserver/internal/customresources/structural"
)

// step leads from a value to a field or an entry of it.
type step struct {
	name string
	key  bool
}

// stepsOf parses a path like .spec.labels['a.b'] and follows it through the
// schema; ok is false if it does not exist.
func stepsOf(path string, s *structural.Schema) (steps []step, ok bool) {
	for rest := path; rest != ""; {
		name, after, ok := nextName(rest)
		if !ok {
			return nil, false
		}
		rest = after
		next, entry := s.Property(name), false
		if next == nil {
			if next, _ = s.Values(); next == nil {
				return nil, false
			}
			entry = true
		}
		steps, s = append(steps, step{name, entry}), next
	}
	return steps, len(steps) > 0
}

func nextName(path string) (name, rest string, ok bool) {
	if inner, quoted := strings.CutPrefix(path, "['"); quoted {
		name, rest, ok = strings.Cut(inner, "']")
		return name, rest, ok && name != ""
	}
	inner, dotted := strings.CutPrefix(path, ".")
	if !dotted {
		return "", "", false
	}
	end := strings.IndexAny(inner, ".[")
	if end < 0 {
		end = len(inner)
	}
	name, rest = inner[:end], inner[end:]
	return name, rest, name != "" && !strings.ContainsAny(name, " \t\n\r]'\"")
}

func follow(path *field.Path, steps []step) *field.Path {
	for _, s := range steps {
		if s.key {
			path = path.Key(s.name)
		} else {
			path = path.Child(s.name)
		}
	}
	return path
}
