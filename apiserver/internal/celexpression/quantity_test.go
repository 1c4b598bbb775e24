package celexpression

import (
	"fmt"
	"strings"
	"testing"

	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// TestHugeQuantities: an expression computes no quantity whose digits would take
// hours, whether it is the expression's own or that of an object.
func TestHugeQuantities(t *testing.T) {
	env := testEnvironment(t)
	object := map[string]any{"huge": "1e1000000000", "tiny": "1E-999999999", "long": strings.Repeat("9", 1000), "real": "1536Mi", "no": "x", "number": int64(3)}
	for text, want := range map[string]string{
		"quantity('1e1000000000').isGreaterThan(quantity('1'))":                   "quantity \"1e1000000000\" is out of range",
		"quantity(object.huge).asInteger() > 0":                                   "quantity \"1e1000000000\" is out of range",
		"quantity(object.tiny).isGreaterThan(quantity('1'))":                      "quantity \"1E-999999999\" is out of range",
		"quantity(object.long).isGreaterThan(quantity('1'))":                      "quantity \"9999",
		"isQuantity(object.huge)":                                                 "false",
		"isQuantity(object.real)":                                                 "true",
		"isQuantity(object.no)":                                                   "false",
		"isQuantity(object.number)":                                               "no such overload",
		"quantity(object.no).asInteger()":                                         "quantities must match the regular expression",
		"quantity(object.real).asInteger()":                                       "1610612736",
		"quantity('1e99').isGreaterThan(quantity('1'))":                           "true",
		"quantity(object.real).add(quantity('512Mi')).compareTo(quantity('2Gi'))": "0",
	} {
		program, compileErr := Compile(env, text)
		if compileErr != nil {
			t.Errorf("%s: %s", text, compileErr.Detail)
			continue
		}
		budget := NewBudget(celconfig.PerCallLimit)
		value, err := program.Evaluate(t.Context(), map[string]any{"object": object, "authorizer": nil}, budget)
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = fmt.Sprint(value.Value())
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
		if budget.Left() >= celconfig.PerCallLimit {
			t.Errorf("%s cost nothing", text)
		}
	}
}
