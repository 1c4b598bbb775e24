package check

import (
	"bytes"
	"encoding/json"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// GoFieldNames is a value as upstream's messages show it: there, validation sees
// types without JSON names, so messages show Go's field names, and empty values
// as null. Only metadata and selectors are shown as users write them.
type GoFieldNames struct{ Value any }

// MarshalJSON implements json.Marshaler.
func (s GoFieldNames) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	err := spell(&b, reflect.ValueOf(s.Value))
	return b.Bytes(), err
}

func spell(b *bytes.Buffer, v reflect.Value) error {
	if !v.IsValid() {
		b.WriteString("null")
		return nil
	}
	_, marshals := v.Interface().(json.Marshaler)
	if !marshals && v.Type() != reflect.TypeFor[metav1.LabelSelector]() {
		switch v.Kind() {
		case reflect.Pointer, reflect.Interface:
			return spell(b, v.Elem())
		case reflect.Slice:
			if !v.IsNil() {
				return spellList(b, v)
			}
		case reflect.Struct:
			return spellStruct(b, v)
		}
	}
	if v.Kind() == reflect.Pointer && v.IsNil() {
		b.WriteString("null")
		return nil
	}
	text, err := json.Marshal(v.Interface())
	b.Write(text)
	return err
}

func spellList(b *bytes.Buffer, v reflect.Value) error {
	b.WriteByte('[')
	for i := range v.Len() {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := spell(b, v.Index(i)); err != nil {
			return err
		}
	}
	b.WriteByte(']')
	return nil
}

func spellStruct(b *bytes.Buffer, v reflect.Value) error {
	b.WriteByte('{')
	first := true
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		if name == "TypeMeta" {
			continue
		}
		start := b.Len()
		if !first {
			b.WriteByte(',')
		}
		if name == "ObjectMeta" {
			text, err := json.Marshal(v.Field(i).Interface())
			if err != nil {
				return err
			}
			if text = text[1 : len(text)-1]; len(text) == 0 {
				b.Truncate(start)
				continue
			}
			b.Write(text)
		} else {
			b.WriteString(`"` + name + `":`)
			if err := spell(b, v.Field(i)); err != nil {
				return err
			}
		}
		first = false
	}
	b.WriteByte('}')
	return nil
}
