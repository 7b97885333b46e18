"""What XGBoost's and LightGBM's trainers have in common: their arguments, their data, and how rounds are reported."""
