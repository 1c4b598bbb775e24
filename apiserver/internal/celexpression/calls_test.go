package celexpression

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// TestDearCalls: a call that would make a huge value, or compare for hours, does not begin,
// and ends the expression whatever is beside it; all others are what they were.
func TestDearCalls(t *testing.T) {
	env := testEnvironment(t)
	many := make([]any, 2000)
	for i := range many {
		many[i] = fmt.Sprint(i)
	}
	object := map[string]any{"text": strings.Repeat("a", 1<<20), "short": "a-b-c", "many": many, "huge": int64(1) << 40}
	thirty := strings.Repeat("object.text,", 29) + "object.text"
	const limit = "" // for a call that exceeds it
	for text, want := range map[string]string{
		"'" + strings.Repeat("%s", 30) + "'.format([" + thirty + "]).size() > 0": limit,
		"'%s'.format([[" + thirty + "]]).size() > 0":                             limit,
		"'%s'.format([{'a': [" + thirty + "]}]).size() > 0":                      limit,
		"object.text.replace('a', object.text).size() > 0":                       limit,
		"object.text.replace('', object.text).size() > 0":                        limit,
		"object.text.replace('a', object.text, 30).size() > 0":                   limit,
		"true || object.text.replace('a', object.text).size() > 0":               "true",
		"object.text.replace('a', object.text).size() > 0 || true":               limit,
		"object.many.join(object.text).size() > 0":                               limit,
		"object.many.map(x, object.text).join().size() > 0":                      limit,
		"lists.range(20000).map(i, object.many).flatten().size() > 0":            limit,
		"[lists.range(20000).map(i, object.many)].flatten(2).size() > 0":         limit,
		"lists.range(object.huge).size() > 0":                                    limit,
		"object.many.distinct().size() > 0":                                      limit,
		"sets.contains(object.many, object.many)":                                limit,
		// Each is allowed, and together they cost too much.
		"object.many.all(x, '%s%s%s%s'.format([object.text, object.text, object.text, object.text]).size() > 0)": limit,

		"'%s is %d %% of %s'.format([object.short, 3, [1, 'x']])": `a-b-c is 3 % of [1, "x"]`,
		"'%s'.format([object.text]).size()":                       "1048576",
		"object.short.replace('-', '+')":                          "a+b+c",
		"object.short.replace('-', '+', 1)":                       "a+b-c",
		"object.short.replace('', '.')":                           ".a.-.b.-.c.",
		"object.short.split('-').join('/')":                       "a/b/c",
		"object.text.replace('a', '').size()":                     "0",
		"object.text.replace('b', object.text).size()":            "1048576",
		"object.text.replace('a', object.text, 1).size()":         "2097151",
		"lists.range(3).size()":                                   "3",
		"lists.range(400).map(i, object.many).flatten().size()":   "800000",
		"[[1], [2, 3]].flatten().size()":                          "3",
		"[[[1, 2], [3]], [[], [4]]].flatten(9).size()":            "4",
		"[[1]].flatten(0).size()":                                 "1",
		"object.many.join().size()":                               "6890",
		"object.short.split('').distinct().size()":                "4",
		"sets.contains(['a', 'b'], ['a'])":                        "true",
		"object.many.all(x, '%s'.format([x]) == x)":               "true",
	} {
		program, compileErr := Compile(env, text)
		if compileErr != nil {
			t.Errorf("%.60s: %s", text, compileErr.Detail)
			continue
		}
		value, err := program.Evaluate(t.Context(), map[string]any{"object": object, "authorizer": nil}, NewBudget(celconfig.RuntimeCELCostBudget))
		switch {
		case want == limit:
			if !errors.Is(err, ErrCallLimit) {
				t.Errorf("%.60s: %v, want %v", text, err, ErrCallLimit)
			}
		case err != nil:
			t.Errorf("%.60s: %v", text, err)
		case fmt.Sprint(value.Value()) != want:
			t.Errorf("%.60s: %.60v, want %s", text, value.Value(), want)
		}
	}
}
