package openapi

import (
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// The functions here write a v3 document as the protobuf messages of gnostic's
// openapi.v3 package, from the JSON that is kept of it; the field numbers are
// those of gnostic's OpenAPIv3.proto.

// numberedField is a field: its name in JSON and its number in protobuf.
type numberedField struct {
	name   string
	number protowire.Number
}

var (
	schemaFlags = []numberedField{{"nullable", 1}, {"readOnly", 3}, {"writeOnly", 4}, {"deprecated", 8},
		{"exclusiveMaximum", 12}, {"exclusiveMinimum", 14}, {"uniqueItems", 20}}
	schemaReals    = []numberedField{{"multipleOf", 10}, {"maximum", 11}, {"minimum", 13}}
	schemaIntegers = []numberedField{{"maxLength", 15}, {"minLength", 16}, {"maxItems", 18}, {"minItems", 19}, {"maxProperties", 21},
		{"minProperties", 22}}
	schemaTexts   = []numberedField{{"title", 9}, {"pattern", 17}, {"type", 25}, {"description", 34}, {"format", 35}}
	schemaChoices = []numberedField{{"allOf", 26}, {"oneOf", 27}, {"anyOf", 28}}
	itemMethods   = []numberedField{{"get", 4}, {"put", 5}, {"post", 6}, {"delete", 7}, {"options", 8}, {"head", 9}, {"patch", 10}}
	schemeTexts   = []numberedField{{"type", 1}, {"description", 2}, {"name", 3}, {"in", 4}}
)

func (m *message) textFields(of map[string]any, fields []numberedField) {
	for _, f := range fields {
		m.text(f.number, stringOf(of[f.name]))
	}
}

// entries writes a map as a message of named values, each by encode.
func (m *message) entries(number, inner protowire.Number, of any, encode func(map[string]any) (message, error)) error {
	var all message
	err := each(mapOf(of), func(name string, value any) error {
		one, err := encode(mapOf(value))
		all.named(inner, name, one)
		return err
	})
	m.embed(number, all)
	return err
}

func documentMessageV3(doc map[string]any) (message, error) {
	var m, info, components, schemes message
	m.text(1, stringOf(doc["openapi"]))
	info.textFields(mapOf(doc["info"]), []numberedField{{"title", 1}, {"version", 6}})
	m.embed(2, info)
	if err := m.entries(4, 1, doc["paths"], itemMessageV3); err != nil {
		return nil, err
	}
	parts := mapOf(doc["components"])
	if err := components.entries(1, 1, parts["schemas"], schemaMessageV3); err != nil {
		return nil, err
	}
	err := schemes.entries(7, 1, parts["securitySchemes"], func(of map[string]any) (message, error) {
		var scheme message
		scheme.textFields(of, schemeTexts)
		return oneOfMessage(1, scheme), nil
	})
	m.embed(5, append(components, schemes...))
	return m, err
}

// oneOfMessage is a message that is one of several, identified by a number.
func oneOfMessage(number protowire.Number, inner message) message {
	var m message
	m.embed(number, inner)
	return m
}

func itemMessageV3(item map[string]any) (message, error) {
	var m message
	for _, method := range itemMethods {
		operation, there := item[method.name]
		if !there {
			continue
		}
		inner, err := operationMessageV3(mapOf(operation))
		if err != nil {
			return nil, err
		}
		m.embed(method.number, inner)
	}
	return m, parameterMessagesV3(&m, 13, item["parameters"])
}

func operationMessageV3(op map[string]any) (message, error) {
	var m message
	m.texts(1, stringsOf(op["tags"]))
	m.textFields(op, []numberedField{{"description", 3}, {"operationId", 5}})
	if err := parameterMessagesV3(&m, 6, op["parameters"]); err != nil {
		return nil, err
	}
	if body, there := op["requestBody"]; there {
		var inner message
		if err := inner.entries(2, 1, mapOf(body)["content"], mediaMessageV3); err != nil {
			return nil, err
		}
		required, _ := mapOf(body)["required"].(bool)
		inner.flag(3, required)
		m.embed(7, oneOfMessage(1, inner))
	}
	if err := m.entries(8, 2, op["responses"], responseMessageV3); err != nil {
		return nil, err
	}
	return m, extensionMessages(&m, 13, op)
}

func responseMessageV3(response map[string]any) (message, error) {
	var m message
	m.text(1, stringOf(response["description"]))
	var err error
	if content, there := response["content"]; there {
		err = m.entries(3, 1, content, mediaMessageV3)
	}
	return oneOfMessage(1, m), err
}

func mediaMessageV3(media map[string]any) (message, error) {
	inner, err := schemaMessageV3(mapOf(media["schema"]))
	return oneOfMessage(1, inner), err
}

func parameterMessagesV3(m *message, number protowire.Number, list any) error {
	parameters, _ := list.([]any)
	for _, value := range parameters {
		p := mapOf(value)
		var inner message
		inner.textFields(p, []numberedField{{"name", 1}, {"in", 2}, {"description", 3}})
		required, _ := p["required"].(bool)
		inner.flag(4, required)
		schema, err := schemaMessageV3(mapOf(p["schema"]))
		if err != nil {
			return err
		}
		inner.embed(10, schema)
		m.embed(number, oneOfMessage(1, inner))
	}
	return nil
}

// schemaMessageV3 is a schema or a reference to one.
func schemaMessageV3(s map[string]any) (message, error) {
	if ref := stringOf(s["$ref"]); ref != "" {
		var m message
		m.text(1, ref)
		return oneOfMessage(2, m), nil
	}
	m, err := plainSchemaMessageV3(s)
	return oneOfMessage(1, m), err
}

func plainSchemaMessageV3(s map[string]any) (message, error) {
	var m message
	for _, f := range schemaFlags {
		on, _ := s[f.name].(bool)
		m.flag(f.number, on)
	}
	for _, f := range schemaReals {
		m.double(f.number, s[f.name])
	}
	for _, f := range schemaIntegers {
		if n, there := s[f.name].(float64); there {
			m = protowire.AppendVarint(protowire.AppendTag(m, f.number, protowire.VarintType), uint64(int64(n)))
		}
	}
	m.textFields(s, schemaTexts)
	m.texts(23, stringsOf(s["required"]))
	if err := m.anys(24, s["enum"]); err != nil {
		return nil, err
	}
	if err := m.addSubschemas(s); err != nil {
		return nil, err
	}
	m.defaultValue(s["default"])
	return m, extensionMessages(&m, 36, s)
}

// addSubschemas writes the schemas that a schema consists of.
func (m *message) addSubschemas(s map[string]any) error {
	for _, f := range schemaChoices {
		list, _ := s[f.name].([]any)
		for _, value := range list {
			choice, err := schemaMessageV3(mapOf(value))
			if err != nil {
				return err
			}
			m.embed(f.number, choice)
		}
	}
	if not, there := s["not"]; there {
		inner, err := plainSchemaMessageV3(mapOf(not))
		if err != nil {
			return err
		}
		m.embed(29, inner)
	}
	if items, there := s["items"]; there {
		inner, err := schemaMessageV3(mapOf(items))
		if err != nil {
			return err
		}
		m.embed(30, oneOfMessage(1, inner))
	}
	if properties, there := s["properties"]; there {
		if err := m.entries(31, 1, properties, schemaMessageV3); err != nil {
			return err
		}
	}
	switch values := s["additionalProperties"].(type) {
	case bool:
		var inner message
		inner.explicitFlag(2, values)
		m.embed(32, inner)
	case map[string]any:
		inner, err := schemaMessageV3(values)
		if err != nil {
			return err
		}
		m.embed(32, oneOfMessage(1, inner))
	}
	return nil
}

// explicitFlag writes a flag whose presence matters.
func (m *message) explicitFlag(number protowire.Number, on bool) {
	*m = protowire.AppendVarint(protowire.AppendTag(*m, number, protowire.VarintType), protowire.EncodeBool(on))
}

func (m *message) double(number protowire.Number, value any) {
	if n, there := value.(float64); there {
		*m = protowire.AppendFixed64(protowire.AppendTag(*m, number, protowire.Fixed64Type), math.Float64bits(n))
	}
}

// defaultValue writes a default. Messages have no room for one that is a list or an
// object.
func (m *message) defaultValue(value any) {
	var inner message
	switch v := value.(type) {
	case float64:
		inner.double(1, v)
	case bool:
		inner.explicitFlag(2, v)
	case string:
		inner = protowire.AppendString(protowire.AppendTag(inner, 3, protowire.BytesType), v)
	default:
		return
	}
	m.embed(33, inner)
}
