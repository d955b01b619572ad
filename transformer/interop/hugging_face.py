"""The names of layers in checkpoints of the package transformers, as pairs for `rename`."""

HUGGING_FACE = [
    (r"\bgamma$", "weight"), (r"\bbeta$", "bias"),  # of norms, in the oldest files
    # layers of BERT, RoBERTa and ELECTRA
    (r"\battention\.self\.", "self_attention."), (r"\battention\.output\.dense\b", "self_attention.output"),
    (r"\battention\.output\.LayerNorm\b", "self_attention_residual.norm"),
    (r"\bintermediate\.dense\b", "feed_forward.inner"), (r"\boutput\.dense\b", "feed_forward.outer"),
    (r"\boutput\.LayerNorm\b", "feed_forward_residual.norm"), (r"\bLayerNorm\b", "norm"),
    # layers of BART, Whisper and Llama
    (r"\bself_attn", "self_attention"), (r"\bencoder_attn", "cross_attention"),
    (r"attention_layer_norm\b", "attention_residual.norm"), (r"\binput_layernorm\b", "self_attention_residual.norm"),
    (r"((?<=\d\.)final_layer_norm|\bpost_attention_layernorm)\b", "feed_forward_residual.norm"),
    (r"\bq_proj\b", "query"), (r"\bk_proj\b", "key"), (r"\bv_proj\b", "value"), (r"\bo(ut)?_proj\b", "output"),
    (r"\bfc1\b", "feed_forward.inner"), (r"\bfc2\b", "feed_forward.outer"),
    # their decoders, each a `LanguageModel`
    (r"\bembed_tokens\b", "table"), (r"\bembed_positions\b", "positions"), (r"\blayer_norm\b", "norm"),
]
"""From the names of Hugging Face to those of the kit: of an `EncoderLayer`, a `DecoderLayer`, a `LanguageModel`."""
