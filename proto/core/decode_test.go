package core

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	kjson "sigs.k8s.io/json"
)

// TestDecodeReadsAsKubernetesDoes: objects are decoded as by sigs.k8s.io/json,
// whichever decoder is used.
func TestDecodeReadsAsKubernetesDoes(t *testing.T) {
	for name, text := range map[string]string{
		"a pod": `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","creationTimestamp":"2026-01-02T03:04:05Z","deletionTimestamp":null,"labels":{"a":"b"},` +
			`"managedFields":[{"manager":"m","operation":"Apply","apiVersion":"v1","time":"2026-01-02T03:04:05Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"k:{\"name\":\"c\"}":{}}}}]},` +
			`"spec":{"containers":[{"name":"c","image":"i","ports":[{"containerPort":80,"protocol":"TCP"}],"env":[{"name":"A","value":"\u003cé\ud83d\ude00"}],` +
			`"resources":{"limits":{"cpu":"100m","memory":"1Gi"}},"livenessProbe":{"httpGet":{"path":"/","port":"http"},"tcpSocket":{"port":8080}}}],` +
			`"volumes":[{"name":"p","projected":{"sources":[{"serviceAccountToken":{"path":"token","expirationSeconds":3607}}]}}],"priority":0,"securityContext":{}},` +
			`"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True","lastTransitionTime":"2026-01-02T03:04:05Z"}]}}`,
		"from a newer server":    `{"metadata":{"name":"a","newer":{"b":[1,2]}},"spec":{"newer":true,"hostNetwork":true},"newer":null}`,
		"no UTF-8":               "{\"metadata\":{\"name\":\"\xff\",\"labels\":{\"a\":\"b\"}},\"spec\":{\"hostNetwork\":true}}",
		"of another case":        `{"Metadata":{"name":"a"}}`,
		"a number that is none":  `{"metadata":{"name":"a"},"spec":{"terminationGracePeriodSeconds":1.5}}`,
		"a string for a boolean": `{"metadata":{"name":"a"},"spec":{"hostNetwork":"true"}}`,
		"not JSON":               `{"metadata":{"name":"a"}`,
		"nothing":                ``,
	} {
		t.Run(name, func(t *testing.T) {
			got, want := &Pod{}, &Pod{}
			gotErr, wantErr := Decode([]byte(text), got), kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), want)
			if fmt.Sprint(gotErr) != fmt.Sprint(wantErr) {
				t.Fatalf("error %v, want %v", gotErr, wantErr)
			}
			if !reflect.DeepEqual(got, want) {
				a, _ := json.Marshal(got)
				b, _ := json.Marshal(want)
				t.Errorf("read\n%s, want\n%s", a, b)
			}
		})
	}
}
