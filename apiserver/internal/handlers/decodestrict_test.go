package handlers

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	kjson "sigs.k8s.io/json"

	"kctl/proto/core"
)

var strictSeeds = []string{
	`{}`, `null`, `{"metadata":null}`, `[]`, `1`, ``, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","labels":{"a":"b"},"creationTimestamp":null}}`,
	`{"metadata":{"name":"a","name":"b"}}`, `{"Metadata":{"Name":"a"}}`, `{"metadata":{"unknown":1}}`, `{"spec":{"containers":null}}`,
	`{"metadata":{"creationTimestamp":"2026-01-02T03:04:05Z","managedFields":[{"manager":"m","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{}}}]},` +
		`"spec":{"containers":[{"name":"c","image":"i","ports":[{"containerPort":80,"protocol":"TCP"}],"env":[{"name":"A","value":"\u003cé\ud83d\ude00"}],` +
		`"resources":{"limits":{"cpu":"100m","memory":"1Gi"},"requests":{"cpu":1}},"livenessProbe":{"httpGet":{"path":"/","port":"http"},"periodSeconds":5}},` +
		`{"name":"d","livenessProbe":{"tcpSocket":{"port":8080}},"securityContext":{"runAsUser":1000,"privileged":false}}],` +
		`"volumes":[{"name":"v","emptyDir":{}},{"name":"p","projected":{"sources":[{"serviceAccountToken":{"path":"token","expirationSeconds":3607}}]}}],` +
		`"tolerations":[{"key":"k","operator":"Exists","tolerationSeconds":300}],"terminationGracePeriodSeconds":30,"hostNetwork":true},` +
		`"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True","lastTransitionTime":"2026-01-02T03:04:05Z"}]}}`,
	`{"spec":{"terminationGracePeriodSeconds":1.0}}`, `{"spec":{"terminationGracePeriodSeconds":1e1}}`, `{"spec":{"hostNetwork":"true"}}`,
	"{\"metadata\":{\"name\":\"\xff\"}}", `{"metadata":{"name":"a"}} `, `{"metadata":{"name":"a"}}x`,
	`{"spec":{"containers":[{"resources":{"limits":{"cpu":1.5}}}]}}`,
}

// sameAsSlow compares unmarshalStrict with the slow decoding that it replaces.
func sameAsSlow(t *testing.T, body []byte, make func() core.Object) {
	t.Helper()
	got, want := make(), make()
	gotStrict, gotErr := unmarshalStrict(body, got)
	wantStrict, wantErr := kjson.UnmarshalStrict(body, want)
	if fmt.Sprint(gotErr) != fmt.Sprint(wantErr) || fmt.Sprint(gotStrict) != fmt.Sprint(wantStrict) {
		t.Fatalf("%q:\n got %v, %v\nwant %v, %v", body, gotErr, gotStrict, wantErr, wantStrict)
	}
	if wantErr == nil && !reflect.DeepEqual(got, want) {
		a, _ := json.Marshal(got)
		b, _ := json.Marshal(want)
		t.Fatalf("%q:\n got %s\nwant %s", body, a, b)
	}
}

func newPod() core.Object    { return &core.Pod{} }
func newSecret() core.Object { return &corev1.Secret{} }

// FuzzStrict compares the fast decoder with the slow one. Even without fuzzing,
// every test run changes each seed in a place or two.
func FuzzStrict(f *testing.F) {
	secrets := []string{`{"data":{"a":"YQ=="},"stringData":{"b":"c"},"immutable":true,"type":"Opaque"}`, `{"data":{"a":"YQ"}}`, `{"data":{"a":"Y\nQ=="}}`,
		`{"data":{"a":null}}`}
	random := rand.New(rand.NewPCG(1, 2))
	for _, seed := range append(strictSeeds, secrets...) {
		f.Add([]byte(seed))
		for range 200 {
			changed := []byte(seed)
			for range 1 + random.IntN(2) {
				if len(changed) == 0 {
					break
				}
				i := random.IntN(len(changed))
				switch random.IntN(3) {
				case 0:
					changed[i] = "{}[]\",:\\ 0e.-tnaA"[random.IntN(17)]
				case 1:
					changed = append(changed[:i], changed[i+1:]...)
				default:
					n := min(len(changed)-i, 1+random.IntN(20))
					changed = append(changed[:i+n:i+n], changed[i:]...)
				}
			}
			f.Add(changed)
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		sameAsSlow(t, body, newPod)
		sameAsSlow(t, body, newSecret)
	})
}
