package config

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
)

// apply copies every field of the file that is set and that no flag has set, and
// refuses those that ask for what this kubelet does not do.
func (c *Config) apply(file *kubeletv1beta1.KubeletConfiguration, flagGiven func(string) bool) error {
	known := map[string][]option{}
	for _, o := range c.options(file) {
		if o.field != nil {
			name := nameOf(file, o.place())
			known[name] = append(known[name], o)
		}
	}
	var problems []error
	value := reflect.ValueOf(file).Elem()
	for i := range value.NumField() {
		name := jsonName(value.Type().Field(i))
		if name == "" || value.Field(i).IsZero() {
			continue // metadata, or not set
		}
		if known[name] == nil && !isEmpty(value.Field(i)) {
			if err := checkField(name, value.Field(i)); err != nil {
				problems = append(problems, fmt.Errorf("%s: %w", name, err))
			}
		}
		for _, o := range known[name] {
			if o.place().IsZero() || o.flag != "" && flagGiven(o.flag) {
				continue
			}
			if err := o.take(); err != nil {
				problems = append(problems, fmt.Errorf("%s: %w", name, err))
			}
		}
	}
	return errors.Join(problems...)
}

// isEmpty says that a list or a map is present but empty.
func isEmpty(value reflect.Value) bool {
	kind := value.Kind()
	return (kind == reflect.Slice || kind == reflect.Map) && value.Len() == 0
}

func jsonName(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	return name
}

// nameOf is the field of the file that place is, or is part of.
func nameOf(file *kubeletv1beta1.KubeletConfiguration, place reflect.Value) string {
	value := reflect.ValueOf(file).Elem()
	offset := place.UnsafeAddr() - value.UnsafeAddr()
	for i := range value.NumField() {
		if field := value.Type().Field(i); offset >= field.Offset && offset < field.Offset+field.Type.Size() {
			return jsonName(field)
		}
	}
	panic("an option whose field is not in the file")
}

// translation is a field that has different forms in the file and in the Config, or
// is shown differently from its input; a nil direction means a plain copy.
type translation struct {
	field any
	read  func() error
	write func()
}

// place is where the option is in a KubeletConfiguration.
func (o option) place() reflect.Value {
	if t, ok := o.field.(translation); ok {
		return reflect.ValueOf(t.field).Elem()
	}
	return reflect.ValueOf(o.field).Elem()
}

// kept is where the option is in the Config.
func (o option) kept() reflect.Value {
	if pairs, ok := o.target.(*pairsFlag); ok {
		return reflect.ValueOf(pairs.into).Elem()
	}
	return reflect.ValueOf(o.target).Elem()
}

// take copies the field from the file to the Config.
func (o option) take() error {
	if t, _ := o.field.(translation); t.read != nil {
		return t.read()
	}
	if o.target != nil {
		put(o.kept(), o.place())
	}
	return nil
}

// show copies the field from the Config to a KubeletConfiguration.
func (o option) show() {
	if t, _ := o.field.(translation); t.write != nil {
		t.write()
	} else if o.target != nil {
		put(o.place(), o.kept())
	}
}

// put copies a value between a Config and a KubeletConfiguration: the latter has
// pointers for what may be left out, and durations that JSON writes as text.
func put(to, from reflect.Value) {
	if from.Kind() == reflect.Pointer {
		from = from.Elem()
	}
	if to.Kind() == reflect.Pointer {
		to.Set(reflect.New(to.Type().Elem()))
		to = to.Elem()
	}
	switch v := from.Interface().(type) {
	case metav1.Duration:
		from = reflect.ValueOf(v.Duration)
	case time.Duration:
		from = reflect.ValueOf(metav1.Duration{Duration: v})
	}
	to.Set(from.Convert(to.Type()))
}
