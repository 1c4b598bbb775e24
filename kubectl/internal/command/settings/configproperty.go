package settings

import (
	"encoding/base64"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"kctl/kubectl/internal/command/frame"
)

// property is where a value stands in a kubeconfig: a field of a struct, or an entry of a
// map.
type property struct {
	in   reflect.Value
	name string
}

// propertyAt finds what a path such as "contexts.NAME.namespace" means. Names may have
// dots: one ends before the first part that is a field of what has the name. An entry that
// is not there is made if asked to.
func propertyAt(config *clientcmdapi.Config, path string, makes bool) (property, error) {
	at := property{in: reflect.ValueOf(config).Elem()}
	for parts := strings.Split(path, "."); ; {
		length := 1
		if at.in.Kind() == reflect.Map {
			length = nameLength(parts, at.in.Type().Elem().Elem())
		}
		at.name, parts = strings.Join(parts[:length], "."), parts[length:]
		ok := at.in.Kind() == reflect.Map || at.field().IsValid()
		if ok && len(parts) == 0 {
			return at, nil
		}
		if ok {
			at.in, ok = at.inner(makes)
		}
		if !ok {
			return property{}, fmt.Errorf("unable to locate path %q", path)
		}
	}
}

// nameLength is the number of parts that are the name of an entry of such a type.
func nameLength(parts []string, of reflect.Type) int {
	for n := 1; n < len(parts); n++ {
		if _, ok := fieldIndex(of, parts[n]); ok {
			return n
		}
	}
	return len(parts)
}

// fieldIndex is the place of the field that kubeconfigs have under a name.
func fieldIndex(of reflect.Type, name string) (int, bool) {
	for i := range of.NumField() {
		if tag, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ","); tag == name && tag != "-" {
			return i, true
		}
	}
	return 0, false
}

// field is the value of a field, and no value if there is no such field.
func (p property) field() reflect.Value {
	if i, ok := fieldIndex(p.in.Type(), p.name); ok {
		return p.in.Field(i)
	}
	return reflect.Value{}
}

// inner is the struct or the map of entries that the property is.
func (p property) inner(makes bool) (reflect.Value, bool) {
	if p.in.Kind() == reflect.Map {
		key := reflect.ValueOf(p.name)
		if !p.in.MapIndex(key).IsValid() {
			if !makes {
				return reflect.Value{}, false
			}
			p.in.SetMapIndex(key, reflect.New(p.in.Type().Elem().Elem()))
		}
		return p.in.MapIndex(key).Elem(), true
	}
	field := p.field()
	if field.Kind() != reflect.Map {
		return field, field.Kind() == reflect.Struct
	}
	if field.IsNil() {
		field.Set(reflect.MakeMap(field.Type()))
	}
	return field, field.Type().Elem().Kind() == reflect.Pointer // extensions have no form that is known
}

// set changes a text, a binary value (base64, unless raw) or a choice.
func (p property) set(value string, raw bool) error {
	field := reflect.Value{}
	if p.in.Kind() == reflect.Struct {
		field = p.field()
	}
	switch {
	case field.Kind() == reflect.String:
		field.SetString(value)
	case field.Kind() == reflect.Bool:
		on, err := strconv.ParseBool(value)
		if err != nil {
			return err
		}
		field.SetBool(on)
	case field.Kind() == reflect.Slice && field.Type().Elem().Kind() == reflect.Uint8:
		data, err := bytesOf(value, raw)
		if err != nil {
			return err
		}
		field.SetBytes(data)
	default:
		return fmt.Errorf("%q is no single value that can be set", p.name)
	}
	return nil
}

// unset takes the value away.
func (p property) unset() {
	if p.in.Kind() == reflect.Map {
		p.in.SetMapIndex(reflect.ValueOf(p.name), reflect.Value{})
		return
	}
	p.field().SetZero()
}

// bytesOf reads a binary value.
func bytesOf(value string, raw bool) ([]byte, error) {
	if raw {
		return []byte(value), nil
	}
	decoded, err := base64.StdEncoding.DecodeString(value)
	if err != nil {
		return nil, fmt.Errorf("error decoding input value: %w", err)
	}
	return decoded, nil
}

// entry is the entry of a name, made if there is none.
func entry[T any](all map[string]*T, name string, make func() *T) *T {
	if all[name] == nil {
		all[name] = make()
	}
	return all[name]
}

func newConfigSet(c *frame.CLI) *cobra.Command {
	var raw bool
	cmd := &cobra.Command{
		Use: "set PROPERTY_NAME PROPERTY_VALUE", Short: "Set an individual value in a kubeconfig file",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return frame.UsageError(cmd, "a property and a value are required")
			}
			if args[1] == "" {
				return errors.New("you cannot use set to unset a property")
			}
			err := modify(c, func(config *clientcmdapi.Config) error {
				at, err := propertyAt(config, args[0], true)
				if err != nil {
					return err
				}
				return at.set(args[1], raw)
			})
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.Out, "Property %q set.\n", args[0])
			return err
		},
	}
	cmd.Flags().BoolVar(&raw, "set-raw-bytes", false,
		"When writing a []byte PROPERTY_VALUE, write the given string directly without base64 decoding.")
	return cmd
}

func newConfigUnset(c *frame.CLI) *cobra.Command {
	return &cobra.Command{
		Use: "unset PROPERTY_NAME", Short: "Unset an individual value in a kubeconfig file",
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := frame.OneName(cmd, args)
			if err != nil {
				return err
			}
			err = modify(c, func(config *clientcmdapi.Config) error {
				at, err := propertyAt(config, name, false)
				if err == nil {
					at.unset()
				}
				return err
			})
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.Out, "Property %q unset.\n", name)
			return err
		},
	}
}
