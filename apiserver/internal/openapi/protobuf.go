package openapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// The functions here write a v2 document as the protobuf messages of
// gnostic's openapi.v2 package, which older clients ask for. They write from
// the same tree that the JSON is made of, so that both always say the same;
// the field numbers are those of gnostic's OpenAPIv2.proto.

// message is a protobuf message being written.
type message []byte

func (m *message) text(number protowire.Number, s string) {
	if s == "" {
		return
	}
	*m = protowire.AppendTag(*m, number, protowire.BytesType)
	*m = protowire.AppendString(*m, s)
}

func (m *message) texts(number protowire.Number, values []string) {
	for _, value := range values {
		*m = protowire.AppendTag(*m, number, protowire.BytesType)
		*m = protowire.AppendString(*m, value)
	}
}

func (m *message) flag(number protowire.Number, on bool) {
	if on {
		*m = protowire.AppendTag(*m, number, protowire.VarintType)
		*m = protowire.AppendVarint(*m, 1)
	}
}

// embed writes another message, even an empty one: its presence alone may have
// a meaning.
func (m *message) embed(number protowire.Number, inner message) {
	*m = protowire.AppendTag(*m, number, protowire.BytesType)
	*m = protowire.AppendBytes(*m, inner)
}

// named writes a name with its value, as maps are encoded.
func (m *message) named(number protowire.Number, name string, value message) {
	var pair message
	pair.text(1, name)
	pair.embed(2, value)
	m.embed(number, pair)
}

func documentMessage(doc map[string]any) (message, error) {
	var m, info, paths, all message
	m.text(1, stringOf(doc["swagger"]))
	about := mapOf(doc["info"])
	info.text(1, stringOf(about["title"]))
	info.text(2, stringOf(about["version"]))
	m.embed(2, info)
	err := each(mapOf(doc["paths"]), func(path string, item any) error {
		inner, err := itemMessage(mapOf(item))
		paths.named(2, path, inner)
		return err
	})
	if err != nil {
		return nil, err
	}
	m.embed(8, paths)
	err = each(mapOf(doc["definitions"]), func(name string, definition any) error {
		inner, err := schemaMessage(mapOf(definition))
		all.named(1, name, inner)
		return err
	})
	if err != nil {
		return nil, err
	}
	m.embed(9, all)
	m.security(doc)
	return m, nil
}

// security writes how users authenticate: which schemes a request needs, and what they are.
func (m *message) security(doc map[string]any) {
	requirements, _ := doc["security"].([]any)
	for _, value := range requirements {
		var requirement message
		for _, name := range slices.Sorted(maps.Keys(mapOf(value))) {
			requirement.named(1, name, nil) // without scopes, which are OAuth's
		}
		m.embed(12, requirement)
	}
	var schemes message
	definitions := mapOf(doc["securityDefinitions"])
	for _, name := range slices.Sorted(maps.Keys(definitions)) {
		var key message
		key.textFields(mapOf(definitions[name]), []numberedField{{"type", 1}, {"name", 2}, {"in", 3}, {"description", 4}})
		schemes.named(1, name, oneOfMessage(2, key))
	}
	m.embed(13, schemes)
}

var methodNumbers = map[string]protowire.Number{"get": 2, "put": 3, "post": 4, "delete": 5, "options": 6, "head": 7, "patch": 8}

func itemMessage(item map[string]any) (message, error) {
	var m message
	err := each(item, func(key string, value any) error {
		number, ok := methodNumbers[key]
		if !ok {
			return nil
		}
		inner, err := operationMessage(mapOf(value))
		m.embed(number, inner)
		return err
	})
	if err != nil {
		return nil, err
	}
	return m, parameterMessages(&m, 9, item["parameters"])
}

func operationMessage(op map[string]any) (message, error) {
	var m, responses message
	m.texts(1, stringsOf(op["tags"]))
	m.text(3, stringOf(op["description"]))
	m.text(5, stringOf(op["operationId"]))
	m.texts(6, stringsOf(op["produces"]))
	m.texts(7, stringsOf(op["consumes"]))
	if err := parameterMessages(&m, 8, op["parameters"]); err != nil {
		return nil, err
	}
	err := each(mapOf(op["responses"]), func(code string, value any) error {
		var response, either message
		response.text(1, stringOf(mapOf(value)["description"]))
		if s, ok := mapOf(value)["schema"]; ok {
			if err := response.oneSchema(2, s); err != nil {
				return err
			}
		}
		either.embed(1, response)
		responses.named(1, code, either)
		return nil
	})
	if err != nil {
		return nil, err
	}
	m.embed(9, responses)
	m.texts(10, stringsOf(op["schemes"]))
	return m, extensionMessages(&m, 13, op)
}

// parameterMessages writes each parameter as the kind that its location determines.
func parameterMessages(m *message, number protowire.Number, list any) error {
	parameters, _ := list.([]any)
	for _, value := range parameters {
		p := mapOf(value)
		var kind, choice, parameter, item message
		required, _ := p["required"].(bool)
		unique, _ := p["uniqueItems"].(bool)
		switch in := stringOf(p["in"]); in {
		case "body":
			kind.text(2, stringOf(p["name"]))
			kind.text(3, in)
			kind.flag(4, required)
			inner, err := schemaMessage(mapOf(p["schema"]))
			if err != nil {
				return err
			}
			kind.embed(5, inner)
			parameter.embed(1, kind)
		case "query", "path":
			kind.flag(1, required)
			kind.text(2, in)
			kind.text(3, stringOf(p["description"]))
			kind.text(4, stringOf(p["name"]))
			// Messages of path parameters have one field fewer before the type.
			if in == "query" {
				kind.text(6, stringOf(p["type"]))
				kind.flag(20, unique)
				choice.embed(3, kind)
			} else {
				kind.text(5, stringOf(p["type"]))
				kind.flag(19, unique)
				choice.embed(4, kind)
			}
			parameter.embed(2, choice)
		default:
			return fmt.Errorf("openapi: no message for a parameter in %q", in)
		}
		item.embed(1, parameter)
		m.embed(number, item)
	}
	return nil
}

func schemaMessage(s map[string]any) (message, error) {
	var m message
	m.text(1, stringOf(s["$ref"]))
	m.text(2, stringOf(s["format"]))
	m.text(4, stringOf(s["description"]))
	m.texts(19, stringsOf(s["required"]))
	if values, ok := s["additionalProperties"]; ok {
		if err := m.oneSchema(21, values); err != nil {
			return nil, err
		}
	}
	if kind := stringOf(s["type"]); kind != "" {
		var item message
		item.text(1, kind)
		m.embed(22, item)
	}
	if items, ok := s["items"]; ok {
		if err := m.oneSchema(23, items); err != nil {
			return nil, err
		}
	}
	if err := m.anys(20, s["enum"]); err != nil {
		return nil, err
	}
	if properties, ok := s["properties"]; ok {
		var all message
		err := each(mapOf(properties), func(name string, value any) error {
			inner, err := schemaMessage(mapOf(value))
			all.named(1, name, inner)
			return err
		})
		if err != nil {
			return nil, err
		}
		m.embed(25, all)
	}
	return m, extensionMessages(&m, 31, s)
}

// oneSchema writes a schema where the message allows for something else, or more: in
// the first field of a message of its own.
func (m *message) oneSchema(number protowire.Number, s any) error {
	inner, err := schemaMessage(mapOf(s))
	if err != nil {
		return err
	}
	var choice message
	choice.embed(1, inner)
	m.embed(number, choice)
	return nil
}

// extensionMessages writes what begins with x-, as YAML, of which JSON is a subset.
func extensionMessages(m *message, number protowire.Number, of map[string]any) error {
	return each(of, func(name string, value any) error {
		if !strings.HasPrefix(name, "x-") {
			return nil
		}
		text, err := anyMessage(value)
		if err != nil {
			return fmt.Errorf("openapi: extension %s: %w", name, err)
		}
		m.named(number, name, text)
		return nil
	})
}

// anyMessage is a value of any kind.
func anyMessage(value any) (message, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var m message
	m.text(2, string(text)+"\n")
	return m, nil
}

// anys writes a list of values of any kind.
func (m *message) anys(number protowire.Number, list any) error {
	values, _ := list.([]any)
	for _, value := range values {
		inner, err := anyMessage(value)
		if err != nil {
			return fmt.Errorf("openapi: value of a list: %w", err)
		}
		m.embed(number, inner)
	}
	return nil
}

// each visits a map in the order of its keys, so that equal documents are
// equal bytes.
func each(m map[string]any, visit func(key string, value any) error) error {
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if err := visit(key, m[key]); err != nil {
			return err
		}
	}
	return nil
}

func stringOf(v any) string {
	s, _ := v.(string)
	return s
}

func mapOf(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

func stringsOf(v any) []string {
	if list, ok := v.([]string); ok {
		return list
	}
	list, _ := v.([]any)
	out := make([]string, 0, len(list))
	for _, item := range list {
		out = append(out, stringOf(item))
	}
	return out
}
