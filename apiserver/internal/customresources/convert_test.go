package customresources

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"kctl/apiserver/internal/webhookclient"
)

// TestConvertedByAWebhook: which answers a webhook may give, and upstream's
// words for the others.
func TestConvertedByAWebhook(t *testing.T) {
	const asked = `{"apiVersion":"c.io/v1","kind":"C","metadata":{"name":"a","namespace":"n","uid":"u","finalizers":["f.io/x"]}}`
	request := &apiextensionsv1.ConversionRequest{UID: "1", DesiredAPIVersion: "c.io/v2", Objects: []runtime.RawExtension{{Raw: []byte(asked)}}}
	good := strings.Replace(asked, "c.io/v1", "c.io/v2", 1)
	answer := func(objects ...string) string {
		return `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","response":{"uid":"1","result":{"status":"Success"},"convertedObjects":[` +
			strings.Join(objects, ",") + `]}}`
	}
	for name, c := range map[string]struct{ answer, want string }{
		"good":            {answer(good), ""},
		"no kind":         {`{"response":{"uid":"1"}}`, "failed: expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got /, Kind="},
		"no response":     {`{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview"}`, "failed: no response provided"},
		"another request": {strings.Replace(answer(good), `"uid":"1"`, `"uid":"2"`, 1), `failed: expected response.uid="1", got "2"`},
		"a failure":       {strings.Replace(answer(), "Success", "Failure", 1), "failed: response.result.status was 'Failure', not 'Success'"},
		"too few":         {answer(), "returned 0 objects, expected 1"},
		"another version": {answer(asked), "returned invalid object at index 0: invalid groupVersion (expected c.io/v2, received c.io/v1)"},
		"another kind":    {answer(strings.Replace(good, `"C"`, `"D"`, 1)), "returned invalid object at index 0: invalid kind (expected C, received D)"},
		"another name":    {answer(strings.Replace(good, `"name":"a"`, `"name":"b"`, 1)), "returned invalid object: must have the same name: a != b"},
		"another object":  {answer(strings.Replace(good, `"uid":"u"`, `"uid":"v"`, 1)), "returned invalid object: must have the same UID: u != v"},
		"no metadata":     {answer(`{"apiVersion":"c.io/v2","kind":"C"}`), "returned invalid object: must have the same name: a != "},
		"a bad label": {answer(strings.Replace(good, `"name"`, `"labels":{"a b":"c"},"name"`, 1)),
			`returned invalid metadata: metadata.labels: Invalid value: "a b"`},
		"labels of null": {answer(strings.Replace(good, `"name"`, `"labels":null,"annotations":null,"name"`, 1)), ""},
		"labels of none": {answer(strings.Replace(good, `"name"`, `"labels":{},"annotations":{},"name"`, 1)), ""},
		"a list": {answer(strings.Replace(good, `"name"`, `"labels":["a"],"name"`, 1)),
			"returned invalid metadata: invalid metadata.labels of type []interface {} in converted object"},
		"a number": {answer(strings.Replace(good, `"name"`, `"annotations":{"a":7},"name"`, 1)),
			"returned invalid metadata: metadata.annotations[a] must be a string, but is int64 in converted object"},
	} {
		var review apiextensionsv1.ConversionReview
		if err := json.Unmarshal([]byte(c.answer), &review); err != nil {
			t.Fatal(name, err)
		}
		from, err := unmarshal([]byte(asked))
		if err != nil {
			t.Fatal(err)
		}
		converted, err := readResponse(request, &review, true)
		if err == nil {
			if err = checkConverted(0, from, converted[0], "c.io/v2"); err != nil {
				err = fmt.Errorf("returned %w", err)
			}
		}
		if c.want == "" && (err != nil || converted[0].GetFinalizers()[0] != "f.io/x") || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if c.want == "" && strings.Contains(fmt.Sprint(converted[0].Object), "labels") {
			t.Errorf("%s: empty labels in %v", name, converted[0].Object)
		}
	}
}

// TestAWebhookWithALongMessage: what a webhook writes of its failure is cut, wherever it stands:
// each read and write of the resource is answered with it.
func TestAWebhookWithALongMessage(t *testing.T) {
	long := strings.Repeat("m", 8<<20)
	for name, answer := range map[string]string{
		"a message": `"uid":"%s","result":{"status":"Failure","message":"` + long + `"}`,
		"a uid":     `"uid":"` + long + `"`,
		"a name":    `"uid":"%s","result":{"status":"Success"},"convertedObjects":[{"apiVersion":"c.io/v2","kind":"C","metadata":{"name":"` + long + `"}}]`,
	} {
		server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var review apiextensionsv1.ConversionReview
			if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
				t.Error(err)
				return
			}
			response := strings.Replace(answer, "%s", string(review.Request.UID), 1)
			_, _ = io.WriteString(w, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","response":{`+response+`}}`)
		}))
		t.Cleanup(server.Close)
		d := &definition{}
		d.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Webhook: &apiextensionsv1.WebhookConversion{
			ConversionReviewVersions: []string{"v1"},
			ClientConfig: &apiextensionsv1.WebhookClientConfig{
				URL: &server.URL, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			},
		}}
		hook := newWebhook(d, webhookclient.Access{})
		t.Cleanup(hook.client.Close)
		from, err := unmarshal([]byte(`{"apiVersion":"c.io/v1","kind":"C","metadata":{"name":"a"}}`))
		if err != nil {
			t.Fatal(err)
		}
		to := &compiledVersion{group: "c.io", name: "v2"}
		_, err = (&converter{webhook: hook}).convertTidied(t.Context(), to, []*object{from}, func(*object) {})
		if err == nil || !strings.Contains(err.Error(), "mmm") || len(err.Error()) > 20_000 {
			t.Errorf("%s: %.300v (%d bytes)", name, err, len(fmt.Sprint(err)))
		}
	}
}
