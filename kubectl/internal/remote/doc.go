// Package remote joins the user's terminal to a container: the upgraded
// connections of exec and attach, and port-forward. It sets terminals to raw
// mode and always sets them back.
//
// Package command calls it. The protocols are client-go's: WebSocket first,
// SPDY for servers that have only that.
package remote
