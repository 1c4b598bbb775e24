package rest

// MaxAnswerHeaders limits the headers of an answer from a server that is not trusted, such as a
// container, a node, a webhook or an issuer, in bytes: net/http allows 10 MiB, which take 20 times
// as much memory if the headers are short.
const MaxAnswerHeaders = 64 << 10
