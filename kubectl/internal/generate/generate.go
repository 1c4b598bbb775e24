package generate

import (
	"fmt"
	"sort"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// RunPodV1 is the name of the one generator that `run` still has.
const RunPodV1 = "run-pod/v1"

// Kind is the type of a parameter's value.
type Kind int

// The kinds of parameters.
const (
	Text Kind = iota // string
	Flag             // bool
	List             // []string
)

// Parameter is one input of a generator.
type Parameter struct {
	Name     string
	Kind     Kind
	Required bool
}

// Values are the inputs of a generator, by parameter name. A missing value is
// the parameter's zero value.
type Values map[string]any

func (v Values) text(name string) string { s, _ := v[name].(string); return s }
func (v Values) flag(name string) bool   { b, _ := v[name].(bool); return b }
func (v Values) list(name string) []string {
	l, _ := v[name].([]string)
	return l
}

// Generator makes one object from checked values.
type Generator interface {
	Parameters() []Parameter
	Generate(values Values) (runtime.Object, error)
}

var generators = map[string]Generator{RunPodV1: runPod{}}

// removed names the generators that `run` once had, with their replacements.
var removed = map[string]string{
	"run/v1":                  "apply a manifest of kind ReplicationController",
	"deployment/v1beta1":      "apply a manifest of kind Deployment (apps/v1)",
	"deployment/apps.v1beta1": "apply a manifest of kind Deployment (apps/v1)",
	"deployment/apps.v1":      "apply a manifest of kind Deployment (apps/v1)",
	"job/v1":                  "apply a manifest of kind Job (batch/v1)",
	"cronjob/v1beta1":         "apply a manifest of kind CronJob (batch/v1)",
	"cronjob/v2alpha1":        "apply a manifest of kind CronJob (batch/v1)",
	"service/v1":              "apply a manifest of kind Service",
	"service/v2":              "apply a manifest of kind Service",
}

// Lookup finds a generator by its name.
func Lookup(name string) (Generator, error) {
	if g, ok := generators[name]; ok {
		return g, nil
	}
	if instead, ok := removed[name]; ok {
		return nil, fmt.Errorf("generator %q was removed: use %s for a pod, or %s", name, RunPodV1, instead)
	}
	return nil, fmt.Errorf("generator %q not found: there is %s", name, RunPodV1)
}

// Make checks the values against the generator's parameters and generates.
func Make(g Generator, values Values) (runtime.Object, error) {
	if err := validate(g.Parameters(), values); err != nil {
		return nil, err
	}
	return g.Generate(values)
}

// validate reports everything that is wrong with the values at once.
func validate(parameters []Parameter, values Values) error {
	var wrong []string
	known := make(map[string]bool, len(parameters))
	for _, p := range parameters {
		known[p.Name] = true
		value, given := values[p.Name]
		if !given || value == nil {
			if p.Required {
				wrong = append(wrong, fmt.Sprintf("parameter %s is required", p.Name))
			}
			continue
		}
		if problem := p.check(value); problem != "" {
			wrong = append(wrong, problem)
		}
	}
	for name := range values {
		if !known[name] {
			wrong = append(wrong, fmt.Sprintf("parameter %s is unknown", name))
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	sort.Strings(wrong)
	return fmt.Errorf("invalid parameters: %s", strings.Join(wrong, "; "))
}

func (p Parameter) check(value any) string {
	switch v := value.(type) {
	case string:
		if p.Kind != Text {
			return fmt.Sprintf("parameter %s must not be a text", p.Name)
		}
		if p.Required && v == "" {
			return fmt.Sprintf("parameter %s is required", p.Name)
		}
	case bool:
		if p.Kind != Flag {
			return fmt.Sprintf("parameter %s must not be true or false", p.Name)
		}
	case []string:
		if p.Kind != List {
			return fmt.Sprintf("parameter %s must not be a list", p.Name)
		}
	default:
		return fmt.Sprintf("parameter %s has type %T", p.Name, value)
	}
	return ""
}
